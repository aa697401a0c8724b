package gpucheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/live"
)

// Options are how a machine's GPUs are tried.
type Options struct {
	Version, Driver string // for the report
	Library         gpu.Library
	Boards          gpu.Boards // the GPU models that are known
	// Watch is for how long a GPU is watched at a time, Every the time between two readings.
	Watch, Every time.Duration
	// Load makes a GPU work; nil: there is none, and NoLoad says why.
	Load   func(ctx context.Context, id gpu.Identity) (stop func(), err error)
	NoLoad string
	// Locker locks GPUs in processes that can be killed; nil: nothing is locked.
	Locker Locker
}

// Locker sets GPUs as an agent does, in a process of its own.
type Locker interface {
	// Lock locks a GPU at a setting. The process goes on until kill, which ends it at once and
	// gives nothing back.
	Lock(ctx context.Context, uuid string, at dvfsmodel.Setting) (
		took time.Duration, kill func() error, err error)
	// Restore gives back what such processes left, by their journal alone.
	Restore(ctx context.Context) error
}

// checker is a check under way.
type checker struct {
	Options
	report *Report
	names  []string // the boards' numbers and what they are called in the report, in turn
}

// Check tries all GPUs one after the other. The error is the context's: what is wrong with GPUs is
// in the report. What was locked is given back whatever becomes of the context.
func Check(ctx context.Context, o Options) (*Report, error) {
	c := &checker{Options: o, report: &Report{
		Schema: 1, Version: o.Version, Driver: o.Driver, At: time.Now().UTC().Truncate(time.Second),
		Wrote: o.Locker != nil, GPUs: []GPU{}, Trouble: []string{},
	}}
	devices, err := o.Library.Devices()
	if err != nil {
		c.report.Trouble = append(c.report.Trouble, err.Error())
	}
	for i, d := range devices {
		if d == nil {
			continue // named in the error
		}
		c.names = append(c.names, d.Identity().UUID, fmt.Sprintf("GPU %d", i))
		c.report.GPUs = append(c.report.GPUs, *c.checkGPU(ctx, i, d))
		if ctx.Err() != nil {
			break
		}
	}
	c.anonymize()
	return c.report, context.Cause(ctx)
}

// anonymize takes the boards' numbers out of what drivers and processes said.
func (c *checker) anonymize() {
	replace := strings.NewReplacer(c.names...).Replace
	all := func(list []string) {
		for i := range list {
			list[i] = replace(list[i])
		}
	}
	all(c.report.Trouble)
	for i := range c.report.GPUs {
		g := &c.report.GPUs[i]
		all(g.Faults)
		all(g.Remarks)
		g.InUse, g.NoLoad = replace(g.InUse), replace(g.NoLoad)
		for j := range g.Calls {
			g.Calls[j].Error = replace(g.Calls[j].Error)
		}
	}
}

// checkGPU tries one GPU.
func (c *checker) checkGPU(ctx context.Context, index int, d gpu.Device) *GPU {
	id := d.Identity()
	g := &GPU{
		Index: index, Bus: id.Bus, Model: id.Model, Minor: id.Minor, Energy: d.Capability().Energy,
		Clocks: []ClockRow{}, Calls: []Call{}, Differs: []Difference{}, Faults: []string{}, Remarks: []string{},
	}
	if can := d.Capability(); can.Can(gpu.WorkloadProfile) {
		g.Profiles = can.Profiles.Names()
	}
	limits := d.Capability().Limits
	g.LimitWMin, g.LimitWMax = known(limits.Min), known(limits.Max)
	for control := range gpu.NumControls {
		g.Controls = append(g.Controls, Control{control.String(), d.Capability().Can(control)})
	}
	g.readAll(d)
	g.Idle = c.watch(ctx, g, d)
	if g.InUse == "" && g.Idle != nil && g.Idle.Utilisation.Or(0) >= idleUse {
		g.InUse = "it works, though no process is listed"
	}
	stop := c.startLoad(ctx, g, d)
	g.compare(c.Boards)
	if c.Locker != nil && g.InUse == "" {
		c.tryLock(ctx, g, d)
	}
	stop()
	return g
}

// idleUse is from which utilisation on a GPU isn't idle.
const idleUse = 0.05

func known[T ~float64](v T) live.Number {
	if v == 0 {
		return live.Number{}
	}
	return live.Known(float64(v))
}

func (g *GPU) addFault(format string, args ...any) {
	g.Faults = append(g.Faults, fmt.Sprintf(format, args...))
}

func (g *GPU) addRemark(format string, args ...any) {
	g.Remarks = append(g.Remarks, fmt.Sprintf(format, args...))
}

// callCount is how often each call is made to see how long it takes.
const callCount = 10

// readAll asks for everything that a driver tells, and times it.
func (g *GPU) readAll(d gpu.Device) {
	var table gpu.Clocks
	var shared gpu.Sharing
	var pids []int
	calls := []struct {
		name string
		make func() error
		need bool // without it nothing is ever set
	}{
		{"clocks", func() (err error) { table, err = d.Clocks(); return err }, true},
		{"read", func() error { _, err := d.Read(); return err }, true},
		{"limit", func() error {
			limit, err := d.PowerLimit()
			g.LimitW = known(limit)
			return err
		}, false},
		{"processes", func() (err error) { pids, err = d.Processes(); return err }, false},
		{"sharing", func() (err error) { shared, err = d.Sharing(); return err }, true},
	}
	for _, call := range calls {
		timed, err := timeCall(call.name, call.make)
		g.Calls = append(g.Calls, timed)
		switch {
		case err == nil:
		case errors.Is(err, gpu.ErrNotSupported) && !call.need:
			g.addRemark("%v", err)
		case errors.Is(err, gpu.ErrNotSupported):
			g.addRemark("it can only be observed: %v", err)
			g.InUse = cmp.Or(g.InUse, "can't be told: "+err.Error())
		default:
			g.addFault("%v", err)
			g.InUse = cmp.Or(g.InUse, "can't be told: "+err.Error())
		}
		if call.name == "processes" && err != nil {
			g.InUse = cmp.Or(g.InUse, "can't be told: "+err.Error())
		}
	}
	for i, mem := range table.Mem {
		g.Clocks = append(g.Clocks, ClockRow{mem, table.Core[i]})
	}
	switch {
	case len(pids) > 0:
		g.InUse = fmt.Sprintf("by %d processes", len(pids))
	case shared.MIG:
		g.InUse = cmp.Or(g.InUse, "it is divided, and has no clocks of its own")
	}
}

// timeCall makes a call so often and says how long it took.
func timeCall(name string, do func() error) (Call, error) {
	c := Call{Name: name}
	var took []float64
	var err error
	for range callCount {
		began := time.Now()
		err = do()
		took = append(took, milliseconds(time.Since(began)))
		c.Count++
		if err != nil {
			c.Error = err.Error()
			break
		}
	}
	slices.Sort(took)
	c.MedianMS, c.MaxMS = took[len(took)/2], took[len(took)-1]
	return c, err
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// watch reads a GPU for a while.
func (c *checker) watch(ctx context.Context, g *GPU, d gpu.Device) *Watched {
	w := &Watched{}
	var meter gpu.EnergyMeter
	core, mem, use, peak := math.NaN(), math.NaN(), math.NaN(), math.NaN()
	higher := func(a, b float64) float64 {
		if !(a >= b) && !math.IsNaN(b) {
			return b
		}
		return a
	}
	tick := time.NewTicker(c.Every)
	defer tick.Stop()
	for last := time.Now().Add(c.Watch); ; {
		r, err := d.Read()
		if err != nil {
			g.addFault("reading: %v", err)
			return nil
		}
		w.Readings++
		meter.Add(r)
		core, mem = higher(core, float64(r.Core)), higher(mem, float64(r.Mem))
		use, peak = higher(use, r.Utilisation), higher(peak, float64(r.Power))
		if !time.Now().Before(last) || ctx.Err() != nil {
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	sum := meter.Sum()
	w.Seconds = sum.Span.Seconds()
	w.MeanW, w.MaxW = live.Known(float64(sum.Mean())), live.Known(peak)
	w.CoreMHz, w.MemMHz, w.Utilisation = live.Known(core), live.Known(mem), live.Known(use)
	if d.Capability().Energy {
		w.CounterJ, w.IntegratedJ = live.Known(float64(sum.Counter)), live.Known(float64(sum.Integrated))
	}
	if w.Disagree = sum.Disagree; w.Disagree {
		g.addRemark("counter and power disagree: %s J and %s J", text(w.CounterJ), text(w.IntegratedJ))
	}
	return w
}

// startLoad makes the GPU work where it may, watches it, and leaves it working until stop.
func (c *checker) startLoad(ctx context.Context, g *GPU, d gpu.Device) (stop func()) {
	nothing := func() {}
	switch {
	case g.InUse != "":
		g.NoLoad = "the GPU is in use"
		return nothing
	case c.Load == nil:
		g.NoLoad = c.NoLoad
		return nothing
	}
	stop, err := c.Load(ctx, d.Identity())
	if err != nil {
		g.NoLoad = err.Error()
		return nothing
	}
	if g.Load = c.watch(ctx, g, d); g.Load == nil {
		g.NoLoad = "the GPU couldn't be read"
	}
	return stop
}
