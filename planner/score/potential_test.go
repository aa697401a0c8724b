package score_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/planner/fleet"
	"github.com/epplan/epplan/planner/score"
)

// plainPotential is the formula at [score.Potential], worked out anew for every
// node, as it is written.
type plainPotential struct {
	m      fleet.Workload
	room   float64
	s      *fleet.State
	b      float64
	bc     float64 // b_c
	asked  float64 // GPUs that a task of m asks for
	factor float64
	scarce []bool    // by class of m
	even   bool      // a class is as scarce as it takes, where the order of additions decides
	share  []float64 // q_m/Q_m
}

func newPlainPotential(m fleet.Workload, room float64, s *fleet.State) *plainPotential {
	p := &plainPotential{
		m: m, room: room, s: s, scarce: make([]bool, len(m)), share: make([]float64, len(m)),
	}
	gpus, vcpus := 0.0, 0.0
	for i := range s.Len() {
		k := s.Node(i).Kind
		gpus += float64(k.GPUs)
		vcpus += float64(k.CPU) / 1000
		p.b += float64(k.GPUs) * k.Power.Cost(k.Power.GPUBusy-k.Power.GPUIdle)
		p.bc += k.Power.Cost(k.Power.CPU(k.CPU, 0) - k.Power.CPU(k.CPU, k.CPU))
	}
	p.b /= max(1, gpus)
	p.bc /= max(1, vcpus)
	for i := range m {
		p.asked += m[i].P * float64(m[i].GPUMilli()) / 1000
	}
	p.setFactor()
	for i := range m {
		p.setScarcity(i, gpus)
	}
	return p
}

// setFactor is 1 below load .75, 11 from load .9 on, in steps of a fiftieth.
func (p *plainPotential) setFactor() {
	cpus, used := p.s.CPUs()
	load := max(float64(p.s.Allocated())/max(1, float64(p.s.Capacity())), float64(used)/max(1, float64(cpus)))
	load = math.Floor(load*50) / 50
	p.factor = 1 + 10*min(1, max(0, (load-0.75)/0.15))
}

// setScarcity is how scarce room for a class is, and its share in who asks for it.
func (p *plainPotential) setScarcity(class int, gpus float64) {
	own := p.q(class)
	if own == 0 {
		return
	}
	claim, there, room, known := 0.0, 0.0, 0.0, make(map[*fleet.Kind]bool)
	cpuOnly := p.m[class].GPUs == 0
	for other := range p.m {
		if p.q(other) > 0 && (p.m[other].GPUs == 0) == cpuOnly && p.onlyWhere(other, class) {
			claim += p.q(other)
		}
	}
	for i := range p.s.Len() {
		n := p.s.Node(i)
		known[n.Kind] = true
		room += p.roomOn(class, n)
		if empty := fleet.NewNode(n.Kind); empty.Fits(&p.m[class].Demand) {
			if cpuOnly {
				there += math.Floor(float64(n.Kind.CPU) / 1000)
			} else {
				there += float64(n.Kind.GPUs)
			}
		}
	}
	if there == 0 {
		return
	}
	p.share[class] = own / claim
	ahead := min(p.room, 1-float64(p.s.Allocated())/1000/max(0.001, gpus))
	asks := claim * gpus
	switch {
	case cpuOnly && (p.asked == 0 || gpus == 0):
		asks = math.Inf(1)
	case cpuOnly:
		asks = claim * gpus / p.asked
	}
	least := 0.001 // a unit of room
	if cpuOnly {
		least = 1
	}
	spoken := min(asks, there) * ahead / max(least, room)
	p.scarce[class] = spoken >= 0.9
	p.even = p.even || math.Abs(spoken-0.9) < 1e-9
}

// q returns a class's part of the GPUs asked for, or the vCPU of its part of the tasks if it has no GPUs.
func (p *plainPotential) q(class int) float64 {
	c := &p.m[class]
	if c.GPUs == 0 {
		return c.P * float64(c.CPU) / 1000
	}
	return c.P * float64(c.GPUMilli()) / 1000 / max(1e-12, p.asked)
}

// onlyWhere reports whether one class has room on empty nodes, and only where
// another has room, too.
func (p *plainPotential) onlyWhere(one, other int) bool {
	anywhere := false
	for i := range p.s.Len() {
		empty := fleet.NewNode(p.s.Node(i).Kind)
		if empty.Fits(&p.m[one].Demand) {
			anywhere = true
			if !empty.Fits(&p.m[other].Demand) {
				return false
			}
		}
	}
	return anywhere
}

// roomOn fills a node with tasks of a class and counts the GPUs that they get, or the whole vCPU if they
// have no GPUs.
func (p *plainPotential) roomOn(class int, n *fleet.Node) float64 {
	d, left, gpus := &p.m[class].Demand, *n, 0.0
	if d.GPUs == 0 {
		vcpus := int64(0)
		for left.CPU >= d.CPU && d.CPU > 0 {
			left.CPU -= d.CPU
			vcpus += d.CPU
		}
		return float64(vcpus / 1000)
	}
	for left.Fits(d) {
		if d.IsShared() {
			left.Place(d, left.TightestGPU(d.Milli))
		} else {
			left.Place(d, left.WholeGPUs(d.GPUs))
		}
		gpus += float64(d.GPUMilli()) / 1000
	}
	return gpus
}

// of returns the potential of a node.
func (p *plainPotential) of(n *fleet.Node) float64 {
	g, c := float64(n.FreeMilli())/1000, float64(n.CPU)/1000
	next, stranded, worth := 0.0, 0.0, 0.0
	for i := range p.m {
		next += p.m[i].P * p.nextWatts(&p.m[i].Demand, n)
		if p.m[i].GPUs > 0 && p.m[i].CPU > 0 {
			perGPU := float64(p.m[i].CPU) / float64(p.m[i].GPUMilli())
			stranded += p.q(i) * max(0, g-c/perGPU)
		}
		switch {
		case p.scarce[i] && p.m[i].GPUs == 0:
			worth += p.bc * p.share[i] * p.roomOn(i, n)
		case p.scarce[i]:
			worth += p.b * p.share[i] * p.roomOn(i, n)
		}
	}
	fragments := fleet.NewFragmentation(p.m).OfNode(n) / 1000
	return n.Cost() + 0.17*next + p.factor*p.b*(0.15*fragments+stranded) - worth
}

// nextWatts returns the least watts that a task would add to a node.
func (p *plainPotential) nextWatts(d *fleet.Demand, n *fleet.Node) float64 {
	if !n.Fits(d) {
		return 450
	}
	if !d.IsShared() {
		after := *n
		after.Place(d, n.WholeGPUs(d.GPUs))
		return after.Cost() - n.Cost()
	}
	least := math.Inf(1)
	for g := range n.Kind.GPUs {
		if int(n.GPU[g]) >= d.Milli {
			after := *n
			after.Place(d, 1<<uint(g))
			least = min(least, after.Cost()-n.Cost())
		}
	}
	return least
}

// growth returns the least growth of a node's potential by a task.
func (p *plainPotential) growth(d *fleet.Demand, n *fleet.Node) float64 {
	least := math.Inf(1)
	for g := range max(1, n.Kind.GPUs) {
		after := *n
		switch {
		case !d.IsShared():
			after.Place(d, n.WholeGPUs(d.GPUs))
		case int(n.GPU[g]) < d.Milli:
			continue
		default:
			after.Place(d, 1<<uint(g))
		}
		least = min(least, p.of(&after)-p.of(n))
	}
	return least
}

func TestThePotentialIsWhatItsFormulaSays(t *testing.T) {
	scarce := 0
	rapid.Check(t, func(t *rapid.T) {
		demands := drawDemands(t, 8)
		m := fleet.NewWorkload(demands, 1)
		s := fleet.NewState(drawKinds(t))
		for range rapid.IntRange(0, 30).Draw(t, "tasks") {
			d := rapid.SampledFrom(demands).Draw(t, "task")
			placeAnyhow(t, s, rapid.IntRange(0, s.Len()-1).Draw(t, "node"), &d)
		}
		room := rapid.SampledFrom([]float64{0, 0.3, 0.5, 1}).Draw(t, "room")
		plain, p := newPlainPotential(m, room, s), score.NewPotential(m, room)
		p.Update(s)
		if plain.even {
			return
		}
		if slices.Contains(plain.scarce, true) {
			scarce++
		}
		for i := range s.Len() {
			for j := range demands {
				if n := s.Node(i); n.Fits(&demands[j]) {
					got, _ := p.Score(&demands[j], n)
					if want := -plain.growth(&demands[j], n); math.Abs(got-want) > 2e-6 {
						t.Fatalf("%+v on node %d, %+v: %v, want %v", demands[j], i, *n, got, want)
					}
				}
			}
		}
	})
	if scarce == 0 {
		t.Error("no room was ever scarce")
	}
}

// placeAnyhow puts a task on the first GPUs with room, if it fits.
func placeAnyhow(t *rapid.T, s *fleet.State, node int, d *fleet.Demand) {
	n := s.Node(node)
	if !n.Fits(d) {
		return
	}
	gpus := n.WholeGPUs(d.GPUs)
	if d.IsShared() {
		gpus = n.TightestGPU(d.Milli)
	}
	if err := s.Place(node, d, gpus); err != nil {
		t.Fatal(err)
	}
}

// By hand, without a workload: watts are all that counts.
func TestWithoutAWorkloadThePotentialIsPower(t *testing.T) {
	full := used()
	empty := fleet.NewNode(full.Kind)
	empty.Asleep = true
	p := score.NewPotential(nil, score.DefaultRoom)
	p.Update(fleet.NewState([]*fleet.Kind{full.Kind}))
	for _, c := range []struct {
		name string
		d    fleet.Demand
		n    *fleet.Node
		want float64
	}{
		{"an idle GPU", fleet.Demand{CPU: 4000, GPUs: 1, Milli: 700}, full, -120},
		{"waking a node of 285 W idle and 7 W asleep", fleet.Demand{CPU: 1}, &empty, -(285 - 7 + 105)},
	} {
		if got, _ := p.Score(&c.d, c.n); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// level fills or empties a cluster of 100 GPUs up to a number of them.
type level struct {
	s    *fleet.State
	gpus int
}

func (l *level) to(t *testing.T, gpus int) {
	t.Helper()
	d := fleet.Demand{GPUs: 1, Milli: fleet.WholeGPU}
	for ; l.gpus < gpus; l.gpus++ {
		if err := l.s.Place(l.gpus/10, &d, 1<<(l.gpus%10)); err != nil {
			t.Fatal(err)
		}
	}
	for ; l.gpus > gpus; l.gpus-- {
		last := l.gpus - 1
		l.s.Release(last/10, &d, 1<<(last%10))
	}
}

func TestPricesRiseByStepsAndDoNotFlutterWhenTheLoadDoes(t *testing.T) {
	kinds := make([]*fleet.Kind, 10)
	for i := range kinds {
		kinds[i] = kindOf("G2", 96_000, 400_000, 10)
	}
	cluster := level{s: fleet.NewState(kinds)}
	p := score.NewPotential(nil, score.DefaultRoom)
	last := 1.0
	for _, c := range []struct {
		gpus int
		want float64
	}{
		{0, 1},
		{75, 1},
		{78, 3},
		{77, 3},
		{78, 3},
		{76, 1 + 10*.01/.15},
		{84, 7},
		{90, 11},
		{89, 11},
		{88, 1 + 10*.13/.15},
		{100, 11},
		{10, 1},
	} {
		cluster.to(t, c.gpus)
		changed := p.Update(cluster.s)
		if got := p.Factor(); math.Abs(got-c.want) > 1e-9 || changed != (got != last) {
			t.Errorf("%d %% allocated: factor %v (changed %v), want %v", c.gpus, got, changed, c.want)
		}
		last = p.Factor()
	}
}

func TestPricesRiseWithTheVCPUInUse(t *testing.T) {
	s := fleet.NewState([]*fleet.Kind{kindOf("G2", 96_000, 400_000, 8)})
	p := score.NewPotential(nil, score.DefaultRoom)
	p.Update(s)
	if err := s.Place(0, &fleet.Demand{CPU: 90_000}, 0); err != nil {
		t.Fatal(err)
	}
	if changed := p.Update(s); !changed || p.Factor() != 11 {
		t.Errorf("factor %v (changed %v) with all but 6 vCPU taken, want 11", p.Factor(), changed)
	}
}

// Ten nodes of two T4 each draw the least; a quarter of the GPUs are asked for by
// tasks that run on nothing else.
func TestRoomIsKeptForTasksThatFewNodesCanTake(t *testing.T) {
	kinds := make([]*fleet.Kind, 0, 15)
	for range 10 {
		kinds = append(kinds, kindOf("T4", 96_000, 400_000, 2))
	}
	for range 5 {
		kinds = append(kinds, kindOf("G2", 96_000, 400_000, 8))
	}
	any1 := fleet.Demand{CPU: 4000, GPUs: 1, Milli: fleet.WholeGPU}
	picky := any1
	picky.Spec = "T4"
	m := fleet.Workload{{Demand: any1, P: 0.75}, {Demand: picky, P: 0.25}}
	for room, want := range map[float64]int{0: 20, 0.5: 12, 1: 9} {
		s := fleet.NewState(kinds)
		c := score.NewIndex(score.Rule{
			Parts: []score.WeightedScorer{{Scorer: score.NewPotential(m, room), Weight: 1}},
		}, s)
		onT4 := 0
		for range 24 {
			node, gpus, ok := c.Choose(&any1)
			if !ok {
				t.Fatal("no room")
			}
			if err := c.Place(node, &any1, gpus); err != nil {
				t.Fatal(err)
			}
			if node < 10 {
				onT4++
			}
		}
		if onT4 != want {
			t.Errorf("room %v: %d of 24 tasks on T4, want %d", room, onT4, want)
		}
	}
}
