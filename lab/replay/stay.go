package replay

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/check"
	"github.com/epplan/epplan/planner/fleet"
	"github.com/epplan/epplan/planner/pick"
	"github.com/epplan/epplan/planner/place"
	"github.com/epplan/epplan/planner/score"
	"github.com/epplan/epplan/planner/tune"
)

// RecordedTask is a task that came, and how long it ran.
type RecordedTask struct {
	Demand  fleet.Demand
	Arrived float64 // seconds
	Seconds float64
}

// Traffic says how stays are resampled: as a Poisson stream of arrivals, each a
// stay drawn from a list, at the rate that makes their mean GPU demand a part of
// the cluster's capacity. When they arrived in the list doesn't matter.
type Traffic struct {
	Load float64 // that part, above 0
	// Horizon is for how long the cluster is observed, seconds. Longer stays are
	// cut to it, and as much time goes before as warm-up: then all stays that
	// could still be there have begun.
	Horizon float64
}

// maxTasks bounds how many tasks are resampled: the planner takes about 1 KB
// for each.
const maxTasks = 4e6

// Arrivals draws a stream of tasks from stays for a cluster of kinds, one entry
// for each node. Tasks arrive from 0 to twice the horizon. Stays of no length
// and of tasks that no empty node could take are left out; unfit is how many.
// It is an error if what is left asks for no GPUs.
func (t Traffic) Arrivals(
	stays []RecordedTask, kinds []*fleet.Kind, rng *rand.Rand,
) (tasks []planner.Task, unfit int, err error) {
	if !(t.Load > 0) || !(t.Horizon > 0) || math.IsInf(t.Load+t.Horizon, 0) {
		return nil, 0, fmt.Errorf("load %v and horizon %v s, want finite numbers above 0", t.Load, t.Horizon)
	}
	templates := templates(stays, kinds, t.Horizon)
	unfit = len(stays) - len(templates)
	mean := 0.0 // milli-GPU seconds of a stay
	for i := range templates {
		mean += templates[i].milli * templates[i].seconds
	}
	if mean == 0 {
		return nil, unfit, errNoTask
	}
	mean /= float64(len(templates))
	rate := t.Load * float64(fleet.NewState(kinds).Capacity()) / mean
	if rate*2*t.Horizon > maxTasks {
		return nil, unfit, fmt.Errorf("load %v for %v s takes %.3g tasks, want at most %.3g", t.Load,
			t.Horizon, rate*2*t.Horizon, float64(maxTasks))
	}
	const more = 1.02 // room for a few more tasks than are expected
	tasks = make([]planner.Task, 0, int(rate*2*t.Horizon*more))
	for now := rng.ExpFloat64() / rate; now < 2*t.Horizon; now += rng.ExpFloat64() / rate {
		task := templates[rng.IntN(len(templates))].task
		task.Arrival = now
		tasks = append(tasks, task)
	}
	return tasks, unfit, nil
}

var errNoTask = errors.New("no task that fits on a node stays and asks for GPUs")

// AsRecorded returns the stream of tasks as they came, from time 0, whole stays; unfit
// is how many were left out, as in [Traffic.Arrivals]. The tasks arrived within
// span seconds.
func AsRecorded(
	stays []RecordedTask, kinds []*fleet.Kind,
) (tasks []planner.Task, unfit int, span float64, err error) {
	templates := templates(stays, kinds, math.Inf(1))
	if len(templates) == 0 {
		return nil, len(stays), 0, errNoTask
	}
	first := math.Inf(1)
	for i := range templates {
		if at := templates[i].arrived; math.IsNaN(at) || math.IsInf(at, 0) {
			return nil, 0, 0, fmt.Errorf("a stay arrived at %v s, want a finite number", at)
		}
		first = min(first, templates[i].arrived)
	}
	tasks = make([]planner.Task, len(templates))
	for i := range templates {
		tasks[i] = templates[i].task
		tasks[i].Arrival = templates[i].arrived - first
		span = max(span, tasks[i].Arrival)
	}
	return tasks, len(stays) - len(templates), span, nil
}

// taskTemplate is a stay as a task, but for its arrival.
type taskTemplate struct {
	task                    planner.Task
	arrived, seconds, milli float64
}

// templates returns the stays that take time and fit on an empty node, cut to a
// length.
func templates(stays []RecordedTask, kinds []*fleet.Kind, longest float64) []taskTemplate {
	state := fleet.NewState(distinctKinds(kinds))
	demands := make([]fleet.Demand, len(stays))
	for i := range stays {
		demands[i] = stays[i].Demand
	}
	hopeless := dropReasons(demands, state)
	list := make([]taskTemplate, 0, len(stays))
	for i := range stays {
		s := &stays[i]
		if hopeless[i] != Placed || !(s.Seconds > 0) {
			continue
		}
		seconds := min(s.Seconds, longest)
		list = append(list, taskTemplate{
			task: template(&s.Demand, seconds, state), arrived: s.Arrived,
			seconds: seconds, milli: float64(s.Demand.GPUMilli()),
		})
	}
	return list
}

// distinctKinds lists kinds once each, in the order of their first nodes.
func distinctKinds(kinds []*fleet.Kind) []*fleet.Kind {
	var once []*fleet.Kind
	for _, k := range kinds {
		if !slices.Contains(once, k) {
			once = append(once, k)
		}
	}
	return once
}

// template returns a task but for its arrival. It has an option for each GPU model
// that it may run on.
func template(d *fleet.Demand, seconds float64, kinds *fleet.State) planner.Task {
	t := planner.Task{
		ID: "task", Deadline: math.Inf(1), Due: math.Inf(1), Limit: math.Inf(1), Share: 1,
		CPUs: coresOf(d.CPU), MemGiB: gibOf(d.Mem),
	}
	if d.IsShared() {
		t.Share = float64(d.Milli) / fleet.WholeGPU
	}
	run := &dvfsmodel.Fixed{At: dvfsmodel.Point{Scaling: dvfsmodel.DefaultScaling(), Time: seconds}}
	for i := range kinds.Len() {
		model := kinds.Node(i).Kind.Model
		known := slices.ContainsFunc(t.Options, func(o planner.Option) bool { return o.Model == model })
		if d.Accepts(model) && !known {
			t.Options = append(t.Options, planner.Option{Model: model, GPUs: d.GPUs, Response: run})
		}
	}
	return t
}

// coresOf converts milli-vCPU, as the fleet counts, to vCPU, as the planner does.
func coresOf(milli int64) float64 { return float64(milli) / 1000 }

// gibOf converts MiB to GiB.
func gibOf(mib int64) float64 { return float64(mib) / 1024 }

// StreamRun runs a stream of tasks that come and go.
type StreamRun struct {
	Kinds    []*fleet.Kind // one entry for each node
	Chooser  func(fleet.Workload, *fleet.State) score.Chooser
	Workload fleet.Workload
	Park     planner.Parker
	Pick     func(*planner.View, planner.Placer) planner.Picker // nil: first come, first served
	Delay    float64                                            // seconds that waking a node takes
	From, To float64                                            // the time that is observed, seconds
}

// StreamResult is what a run of tasks that come and go came to in the time observed.
type StreamResult struct {
	Power     dvfsmodel.Watt // mean EOPC
	Cost      float64        // the same in weighted watts: see [fleet.Power]
	Allocated float64        // mean part of the GPUs that is allocated
	Asleep    float64        // mean part of the nodes that sleeps
	Arrived   int            // tasks that arrived in the time
	Waited    int            // those that didn't start at once
	MeanWait  float64        // seconds, over all that arrived and started
	Wait95    float64        // the wait that 95 % of them don't exceed
	Unplaced  int            // those that never started
}

// Run plays the tasks with the planner's engine.
func (s *StreamRun) Run(ctx context.Context, tasks []planner.Task) (*StreamResult, error) {
	p := &planner.Problem{
		Cluster: s.cluster(), Tasks: append(slices.Clip(tasks), s.endMarker()), Mode: planner.Online,
	}
	meter := &stateMean{from: s.From, to: s.To}
	policy := &planner.Policy{
		Tune: tune.None, Pick: s.Pick, Park: s.Park,
		Place: place.Scoring{Chooser: s.Chooser, Workload: s.Workload, Observer: meter}.New,
	}
	if policy.Pick == nil {
		policy.Pick = pick.FCFS
	}
	plan, err := planner.Solve(ctx, p, policy, nil)
	if err != nil {
		return nil, err
	}
	if err := check.Plan(p, plan); err != nil {
		return nil, fmt.Errorf("the replayed plan breaks a rule: %w", err)
	}
	result := &StreamResult{}
	meter.fillIn(result)
	s.measureWaits(p, plan, result)
	return result, nil
}

// endMarker returns a task that asks for nothing and arrives when the time observed is
// over: so all that happens before is played.
func (s *StreamRun) endMarker() planner.Task {
	t := template(&fleet.Demand{}, 1, fleet.NewState(s.Kinds[:1]))
	t.Arrival = s.To
	return t
}

// cluster returns the nodes as classes, in the order of their first nodes.
// Nodes that never sleep needn't be waited for.
func (s *StreamRun) cluster() planner.Cluster {
	var c planner.Cluster
	delay := s.Delay
	if math.IsInf(s.Park.OffAt(&c, 0), 1) {
		delay = 0
	}
	for i, k := range distinctKinds(s.Kinds) {
		count := 0
		for _, other := range s.Kinds {
			if other == k {
				count++
			}
		}
		c.Classes = append(c.Classes, planner.NodeClass{
			Name: fmt.Sprintf("%s-%d", k.Model, i), Model: k.Model, Count: count, GPUs: k.GPUs,
			CPUs: coresOf(k.CPU), MemGiB: gibOf(k.Mem),
			IdleW: k.Power.GPUIdle, SleepW: k.Power.Sleep, TurnOnDelay: delay, Steps: k.Power,
		})
	}
	return c
}

// measureWaits measures how long tasks of the observed time waited.
func (s *StreamRun) measureWaits(p *planner.Problem, plan *planner.Plan, result *StreamResult) {
	var waits []float64
	total := 0.0
	for i := range plan.Assignments {
		if p.Tasks[i].Arrival < s.From || p.Tasks[i].Arrival >= s.To {
			continue
		}
		result.Arrived++
		a := &plan.Assignments[i]
		if a.Node < 0 {
			result.Unplaced++
			continue
		}
		wait := a.Start - p.Tasks[i].Arrival
		if wait > 0 {
			result.Waited++
		}
		waits = append(waits, wait)
		total += wait
	}
	if len(waits) == 0 {
		return
	}
	slices.Sort(waits)
	result.MeanWait = total / float64(len(waits))
	result.Wait95 = waits[(len(waits)*19-1)/20]
}

// stateMean averages a cluster's state over a span of time. It is a [place.StateObserver].
type stateMean struct {
	from, to, last  float64 // seconds
	energy, cost    float64 // joules, and weighted ones
	allocated       float64 // milli-GPU seconds
	sleep           float64 // node seconds
	capacity, nodes float64 // of the cluster: milli-GPU, and how many
}

// AdvanceTo adds the time since the last call.
func (m *stateMean) AdvanceTo(now float64, s *fleet.State) {
	span := min(now, m.to) - max(m.last, m.from)
	m.last = now
	if span <= 0 {
		return
	}
	cpu, gpu := s.Power()
	m.energy += float64(cpu+gpu) * span
	m.cost += s.Cost() * span
	m.allocated += float64(s.Allocated()) * span
	m.sleep += float64(s.SleepingNodes()) * span
	m.capacity, m.nodes = float64(s.Capacity()), float64(s.Len())
}

func (m *stateMean) fillIn(p *StreamResult) {
	span := m.to - m.from
	p.Power, p.Cost = dvfsmodel.Watt(m.energy/span), m.cost/span
	p.Allocated = fraction(m.allocated, m.capacity*span)
	p.Asleep = fraction(m.sleep, m.nodes*span)
}
