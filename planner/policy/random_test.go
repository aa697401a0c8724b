package policy_test

import (
	"fmt"
	"math"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// gpuModels are the GPU models of random problems.
var gpuModels = []string{"A", "B", "C"}

// drawer draws random problems. Each problem has a flavour, so that problems of
// the paper's kind (one whole GPU each, one class) are as frequent as mixed ones.
type drawer struct {
	*rapid.T
	simple  bool // one whole GPU, no cores, no memory
	tables  map[string]*dvfsmodel.Table
	ranges  map[string]*dvfsmodel.Range
	arrive  int
	longest float64
}

// bits draws a number of n bits, all equally likely: rapid's own numbers prefer
// small ones too much to fill a cluster.
func (d *drawer) bits(n int, label string) int {
	x := 0
	for range n {
		x <<= 1
		if rapid.Bool().Draw(d.T, label) {
			x |= 1
		}
	}
	return x
}

func (d *drawer) oneIn(n int, label string) bool { return d.bits(6, label)%n == n-1 }

func (d *drawer) number(low, high float64, label string) float64 {
	return low + (high-low)*float64(d.bits(8, label))/255
}

// oneOf draws one of the values.
func oneOf[V any](d *drawer, label string, values ...V) V {
	return values[d.bits(6, label)%len(values)]
}

// The ways in which random tasks arrive.
const (
	atZero = iota
	atWholeSeconds
	atAnyTime
)

// drawProblem draws a valid problem of 1 to 12 tasks and 1 to 3 node classes,
// whose tasks arrive in one of the ways.
func drawProblem(t *rapid.T, arrivals ...int) *planner.Problem {
	d := &drawer{T: t, simple: rapid.Bool().Draw(t, "simple")}
	d.tables, d.ranges = map[string]*dvfsmodel.Table{}, map[string]*dvfsmodel.Range{}
	d.arrive = oneOf(d, "arrivals", arrivals...)
	p := &planner.Problem{
		Start: oneOf(d, "start", planner.StartContinuous, planner.StartSlot),
		Objective: oneOf(d, "objective", dvfsmodel.Objective{}, dvfsmodel.Objective{},
			dvfsmodel.PricedTime(40), dvfsmodel.Objective{EnergyWeight: 1, DelayPower: 1}),
	}
	p.Cluster = d.cluster(p.Start)
	for i := range 1 + d.bits(6, "tasks")%12 {
		p.Tasks = append(p.Tasks, d.task(i))
	}
	p.Mode = planner.ModeOf(p.Tasks)
	if other := oneOf(d, "mode", planner.Offline, planner.Clairvoyant, planner.Offline,
		planner.Online); other != planner.Offline {
		p.Mode = other
	}
	return p
}

func (d *drawer) cluster(start planner.StartRule) planner.Cluster {
	c := planner.Cluster{
		Slot: oneOf(d, "slot", 1, 2.5, 0), OfflineTurnOn: rapid.Bool().Draw(d.T, "offline turn-on"),
	}
	if start == planner.StartSlot && c.Slot == 0 {
		c.Slot = 1
	}
	for i := range oneOf(d, "classes", 1, 1, 2, 3) {
		k := planner.NodeClass{
			Name: fmt.Sprint("class", i), Model: gpuModels[d.bits(2, "model")%(i+1)],
			Count: oneOf(d, "count", 0, 0, 0, 1, 2, 4), GPUs: 1 + d.bits(3, "GPUs"),
			IdleW: oneOf[dvfsmodel.Watt](d, "idle", 37, 0), HostW: oneOf[dvfsmodel.Watt](d, "host", 0, 25.5),
			SleepW:      oneOf[dvfsmodel.Watt](d, "sleep", 0, 4),
			TurnOn:      oneOf[dvfsmodel.Joule](d, "turn-on", 90, 0, 1000),
			TurnOnDelay: oneOf(d, "delay", 0, 0, 3.7, 20),
		}
		if !d.simple && rapid.Bool().Draw(d.T, "limited node") {
			k.CPUs, k.MemGiB = oneOf(d, "cores", 0., 8, 32), oneOf(d, "memory", 0., 16, 64.5)
			k.Partitions = oneOf(d, "partitions", nil, nil, []string{"p"}, []string{"p", "q"})
		}
		c.Classes = append(c.Classes, k)
	}
	return c
}

func (d *drawer) task(i int) planner.Task {
	t := planner.Task{ID: fmt.Sprint("job", i), Share: 1, Limit: math.Inf(1)}
	switch d.arrive {
	case atWholeSeconds:
		t.Arrival = float64(d.bits(5, "arrival"))
	case atAnyTime:
		t.Arrival = d.number(0, 60, "arrival")
	}
	if !d.simple && d.oneIn(3, "shares") {
		t.Share = oneOf(d, "share", 0.5, 0.1, 1./3, 0.7)
	}
	if !d.simple && rapid.Bool().Draw(d.T, "needs") {
		t.CPUs, t.MemGiB = oneOf(d, "needed cores", 0., 1, 3.3, 2, 8, 1.1, 9, 0.7), oneOf(d, "needed memory",
			0., 2.2, 8, 5.1, 16, 4, 1, 20)
	}
	if !d.simple {
		t.Partitions = oneOf(d, "partitions of the job", nil, nil, []string{"q"}, []string{"p"},
			[]string{"q", "p"})
	}
	d.longest = 0
	for m, model := range gpuModels {
		if m > 0 && !rapid.Bool().Draw(d.T, "runs on "+model) {
			continue
		}
		o := planner.Option{Model: model, GPUs: 1, Response: d.response(model)}
		if !d.simple && t.Share == 1 {
			o.GPUs = oneOf(d, "GPUs needed", 1, 1, 1, 2, 2, 3, 5)
			o.Nodes = oneOf(d, "nodes needed", 0, 1, 2, 1, 3, 0)
			o.GPUs *= o.NodeCount()
		}
		d.longest = max(d.longest, o.Response.Default().Time)
		t.Options = append(t.Options, o)
	}
	d.times(&t)
	return t
}

// times draws deadline, due time and limit relative to the run time.
func (d *drawer) times(t *planner.Task) {
	t.Deadline = math.Inf(1)
	if room := d.longest * oneOf(d, "room", 0, 0.9, 1.2, 1.7, 2.5, 3, 4, 10); room > 0 {
		t.Deadline = t.Arrival + room*oneOf(d, "room factor", 1, 0.7, 1.3, 1.111, 0.9)
	}
	if d.oneIn(50, "no room") {
		t.Deadline = t.Arrival
	}
	t.Due = t.Deadline
	if d.oneIn(4, "due earlier") {
		t.Due = min(t.Deadline, t.Arrival+d.longest*d.number(-0.5, 3, "due factor"))
	}
	if d.oneIn(6, "limited") {
		t.Limit = d.longest * d.number(0.6, 2, "limit factor")
	}
}

func (d *drawer) params() dvfsmodel.Params {
	return dvfsmodel.Params{
		P0: dvfsmodel.Watt(d.number(1, 100, "P0")), Gamma: oneOf[dvfsmodel.Watt](d, "gamma", 30, 0, 12.5),
		C: dvfsmodel.Watt(d.number(10, 200, "c")), D: oneOf(d, "D", 10., 20, 5, 3.21),
		Delta: oneOf(d, "delta", 0.5, 0, 1, 0.83), T0: oneOf(d, "t0", 1., 0, 5.55),
	}
}

// response draws a response of any kind. A GPU model has one range and one table.
func (d *drawer) response(model string) dvfsmodel.Response {
	switch d.bits(3, "response") {
	case 0:
		return &dvfsmodel.Discrete{
			Params: d.params(), Table: d.table(model), At: d.table(model).Nearest(1400, 5000),
		}
	case 1:
		return dvfsmodel.NewFrontier(d.params(), d.table(model), d.table(model).Nearest(1400, 5000))
	case 2:
		pt := d.params().At(dvfsmodel.DefaultScaling())
		return &dvfsmodel.Fixed{At: pt}
	}
	if d.ranges[model] == nil {
		r := oneOf(d, "range", dvfsmodel.WideRange(), dvfsmodel.NarrowRange())
		d.ranges[model] = &r
	}
	return &dvfsmodel.Continuous{Params: d.params(), Range: d.ranges[model]}
}

// table draws the clock table of a GPU model: the paper's voltage curve or one
// that isn't convex. The base clocks are among its settings.
func (d *drawer) table(model string) *dvfsmodel.Table {
	if d.tables[model] != nil {
		return d.tables[model]
	}
	pairs := []dvfsmodel.Setting{{Core: 1400, Mem: 5000}}
	for _, mem := range oneOf(d, "memory clocks", []dvfsmodel.MHz{5000}, []dvfsmodel.MHz{2500, 5500}) {
		for core := dvfsmodel.MHz(700); core <= 1700; core += oneOf[dvfsmodel.MHz](d, "core step", 250, 500) {
			pairs = append(pairs, dvfsmodel.Setting{Core: core, Mem: mem})
		}
	}
	var voltage func(float64) dvfsmodel.Volt
	if rapid.Bool().Draw(d.T, "staircase") {
		voltage = func(fc float64) dvfsmodel.Volt { return dvfsmodel.Volt(0.6 + 0.1*math.Floor(fc*4)) }
	}
	table, err := dvfsmodel.NewTable(dvfsmodel.Setting{Core: 1400, Mem: 5000}, pairs, voltage)
	if err != nil {
		d.Fatal(err)
	}
	d.tables[model] = table
	return table
}
