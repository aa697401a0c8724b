package check

import (
	"math"
	"math/bits"
	"sort"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// checkTasks checks what each assignment says of itself.
func (c *checker) checkTasks() {
	late := make([]bool, len(c.p.Tasks))
	for i, placed := range c.placed {
		if !placed {
			continue
		}
		a, t := &c.plan.Assignments[i], &c.p.Tasks[i]
		c.checkGang(i, t, a)
		for _, part := range c.parts(i) {
			c.checkPlace(i, t, part, int(a.Option))
			c.checkOn(i, a, part.Node)
		}
		c.checkStart(i, t, a)
		if !c.apart[i] {
			c.checkSetting(i, t, a)
			c.checkModel(i, t, a)
		}
		c.checkEnd(i, t, a)
		late[i] = exceeds(a.End, t.Deadline)
	}
	c.checkMisses(late)
}

// checkPresent checks that what runs at the present, as far as it is placed, stays on
// its class until its end, and notes on which nodes.
func (c *checker) checkPresent() {
	c.ready = make([]bool, len(c.plan.Nodes))
	if c.p.Snapshot == nil {
		return
	}
	for _, r := range c.p.Snapshot.Running {
		if !c.placed[r.Task] {
			continue
		}
		a := &c.plan.Assignments[r.Task]
		for _, part := range c.parts(r.Task) {
			c.ready[part.Node] = true
		}
		if class := c.plan.Nodes[a.Node].Class; class != r.Class ||
			differs(a.Start, r.Start, max(1, r.Start)) || differs(a.End, r.End, max(1, r.End)) {
			c.report(Present, r.Task, int(a.Node),
				"runs on class %d from %v s to %v s, at the present it does on class %d from %v s to %v s",
				class, a.Start, a.End, r.Class, r.Start, r.End)
		}
	}
}

// checkGang checks that a task has as many nodes as it needs, each once, all of one
// class.
func (c *checker) checkGang(i int, t *planner.Task, a *planner.Assignment) {
	nodes := max(t.Options[a.Option].Nodes, 1)
	if 1+len(a.More) != nodes {
		c.report(Gang, i, int(a.Node), "runs on %d nodes, needs %d", 1+len(a.More), nodes)
	}
	class := c.plan.Nodes[a.Node].Class
	for n, part := range a.More {
		if c.plan.Nodes[part.Node].Class != class {
			c.report(Gang, i, int(part.Node), "is of another class than node %d", a.Node)
		}
		same := part.Node == a.Node
		for _, other := range a.More[:n] {
			same = same || part.Node == other.Node
		}
		if same {
			c.report(Gang, i, int(part.Node), "is there twice")
		}
	}
}

// checkPlace checks that a node has the GPUs that the task needs of it.
func (c *checker) checkPlace(i int, t *planner.Task, part planner.Part, option int) {
	node := int(part.Node)
	k := &c.p.Cluster.Classes[c.plan.Nodes[node].Class]
	o := &t.Options[option]
	if o.Model != k.Model {
		c.report(Place, i, node, "runs on %q, the node has %q", o.Model, k.Model)
	}
	allowed := len(k.Partitions) == 0 || len(t.Partitions) == 0
	for _, name := range t.Partitions {
		for _, other := range k.Partitions {
			allowed = allowed || name == other
		}
	}
	if !allowed {
		c.report(Place, i, node, "is of partitions %q, the node of %q", t.Partitions, k.Partitions)
	}
	count := bits.OnesCount64(uint64(part.GPUs))
	if count*max(o.Nodes, 1) != o.GPUs || (t.Share < 1 && count != 1) {
		c.report(Place, i, node, "has %d GPUs, needs %d on %d nodes (share %v)", count, o.GPUs,
			max(o.Nodes, 1), t.Share)
	}
	if highest := bits.Len64(uint64(part.GPUs)); highest > k.GPUs {
		c.report(Place, i, node, "uses GPU %d of %d", highest-1, k.GPUs)
	}
}

// checkStart checks the start against arrival and slots.
func (c *checker) checkStart(i int, t *planner.Task, a *planner.Assignment) {
	if exceeds(t.Arrival, a.Start) {
		c.report(Arrival, i, int(a.Node), "starts at %v s, arrives at %v s", a.Start, t.Arrival)
	}
	if c.p.Start != planner.StartSlot {
		return
	}
	slots := a.Start / c.p.Cluster.Slot
	if differs(slots, math.Round(slots), max(1, math.Abs(slots))) {
		c.report(Slot, i, int(a.Node), "starts at %v s, want a multiple of %v s", a.Start,
			c.p.Cluster.Slot)
	}
}

// checkOn checks that one interval of a node being on covers the run and the
// delay of switching on before it.
func (c *checker) checkOn(i int, a *planner.Assignment, number int32) {
	node := &c.plan.Nodes[number]
	delay := c.p.Cluster.Classes[node.Class].TurnOnDelay
	after := sort.Search(len(node.On), func(j int) bool { return exceeds(node.On[j].From, a.Start) })
	if after == 0 {
		c.report(Power, i, int(number), "starts at %v s, before it is on", a.Start)
		return
	}
	if c.ready[number] && after == 1 {
		delay = 0
	}
	on := node.On[after-1]
	if exceeds(on.From+delay, a.Start) {
		c.report(Power, i, int(number), "starts at %v s, on at %v s and ready %v s later", a.Start,
			on.From, delay)
	}
	if exceeds(a.End, on.To) {
		c.report(Power, i, int(number), "ends at %v s, off at %v s", a.End, on.To)
	}
}

// checkSetting checks the setting against the GPU.
func (c *checker) checkSetting(i int, t *planner.Task, a *planner.Assignment) {
	response, pt := t.Options[a.Option].Response, &a.Point
	if !response.Allows(pt.Scaling) {
		c.report(Clocks, i, int(a.Node), "setting %+v isn't supported", pt.Scaling)
	}
	if !t.Options[a.Option].Caps.Has(pt.Cap) && pt.Cap != 0 {
		c.report(Cap, i, int(a.Node), "runs under a cap of %v W, want none or %v W up to below %v W", pt.Cap,
			t.Options[a.Option].Caps.Min, t.Options[a.Option].Caps.Max)
	}
	if t.Share < 1 && pt.Cap != 0 {
		c.report(Cap, i, int(a.Node), "runs under a cap of %v W on a part of a GPU, want none", pt.Cap)
	}
	if t.Share < 1 && settingsDiffer(pt.Scaling, response.Default().Scaling) {
		c.report(Clocks, i, int(a.Node), "setting %+v on a part of a GPU, want the default clocks",
			pt.Scaling)
	}
	if !clocksAgree(response, pt) {
		c.report(Clocks, i, int(a.Node), "%v/%v MHz don't agree with the setting %+v", pt.Core,
			pt.Mem, pt.Scaling)
	}
}

// settingsDiffer reports whether two settings differ by more than rounding.
func settingsDiffer(a, b dvfsmodel.Scaling) bool {
	return differs(float64(a.V), float64(b.V), float64(b.V)) || differs(a.Fc, b.Fc, b.Fc) ||
		differs(a.Fm, b.Fm, b.Fm)
}

// clocksAgree reports whether the MHz of a point are its setting's; 0 for a GPU
// without a clock table.
func clocksAgree(response dvfsmodel.Response, pt *dvfsmodel.Point) bool {
	at := response.Default()
	if pt.Scaling == at.Scaling && pt.Core == at.Core && pt.Mem == at.Mem {
		return true
	}
	if at.Core == 0 && pt.Core != 0 {
		if fastest, err := response.Optimum(dvfsmodel.Objective{TimeWeight: 1}, math.Inf(1)); err == nil {
			at = fastest
		}
	}
	core := float64(at.Core) * pt.Scaling.Fc / at.Scaling.Fc
	mem := float64(at.Mem) * pt.Scaling.Fm / at.Scaling.Fm
	return !differs(float64(pt.Core), core, core) && !differs(float64(pt.Mem), mem, mem)
}

// checkModel checks run time, power and energy against the model.
func (c *checker) checkModel(i int, t *planner.Task, a *planner.Assignment) {
	pt := &a.Point
	model, known := dvfsmodel.ModelAt(t.Options[a.Option].Response, pt)
	if !known {
		c.report(Cap, i, int(a.Node), "runs under a cap of %v W, of which its model knows nothing", pt.Cap)
		return
	}
	seconds, power := model.Time(pt.Scaling.Fc, pt.Scaling.Fm), model.Power(pt.Scaling)
	if differs(pt.Time, seconds, seconds) {
		c.report(Model, i, int(a.Node), "takes %v s, the model says %v s", pt.Time, seconds)
	}
	if differs(float64(pt.Power), float64(power), float64(power)) {
		c.report(Model, i, int(a.Node), "draws %v W, the model says %v W", pt.Power, power)
	}
	energy := float64(power) * seconds
	if differs(float64(pt.Energy), energy, energy) {
		c.report(Model, i, int(a.Node), "takes %v J, the model says %v J", pt.Energy, energy)
	}
}

// checkEnd checks the end against start, run time and limit.
func (c *checker) checkEnd(i int, t *planner.Task, a *planner.Assignment) {
	if end := a.Start + a.Point.Time; differs(a.End, end, max(a.Point.Time, math.Abs(end)/1000)) {
		c.report(End, i, int(a.Node), "ends at %v s, start and run time say %v s", a.End, end)
	}
	if !c.apart[i] && exceeds(a.Point.Time, t.Limit) {
		c.report(Limit, i, int(a.Node), "runs for %v s, its limit is %v s", a.Point.Time, t.Limit)
	}
}

// checkMisses checks that exactly the late tasks are listed as such, in order.
func (c *checker) checkMisses(late []bool) {
	listed := make([]bool, len(late))
	last := -1
	for _, i := range c.plan.Misses {
		switch {
		case i < 0 || i >= len(late):
			c.report(Shape, -1, -1, "missed job %d doesn't exist", i)
			continue
		case i <= last:
			c.report(Misses, i, -1, "out of order or twice among the misses")
		case !late[i]:
			c.report(Misses, i, -1, "listed as a miss, but not late")
		}
		last = i
		listed[i] = true
	}
	for i := range late {
		if late[i] && !listed[i] {
			a := &c.plan.Assignments[i]
			c.report(Deadline, i, int(a.Node), "ends at %v s, its deadline is %v s", a.End,
				c.p.Tasks[i].Deadline)
		}
	}
}
