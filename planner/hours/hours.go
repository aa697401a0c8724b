// Package hours has jobs that can wait begin when energy is cheap, or clean.
package hours

import (
	"errors"
	"math"
	"slices"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/steps"
)

// Prices are what a joule costs over time, in a unit of their own, such as euros or grams of CO2. The first
// step holds before it, too.
type Prices struct{ steps.Function[float64] }

// ErrShared tells that GPUs are shared by profile: what each task takes over time isn't known.
var ErrShared = errors.New("hours don't count for jobs that share GPUs by profile: want another policy")

// Cost returns what the energy of a plan costs: runs, idle GPUs, hosts, sleep and switching on, as
// [planner.Account] has them.
func (pr Prices) Cost(p *planner.Problem, plan *planner.Plan) (float64, error) {
	if plan.Shared != nil {
		return 0, ErrShared
	}
	cost, end := 0.0, plan.End()
	for i := range plan.Assignments {
		a := &plan.Assignments[i]
		if a.Node < 0 {
			continue
		}
		watts := plan.PowerAboveIdle(p, &p.Tasks[i], a)
		cost += float64(watts) * pr.Integral(planner.Interval{From: a.Start, To: a.End})
	}
	for n := range plan.Nodes {
		k := &p.Cluster.Classes[plan.Nodes[n].Class]
		cost += float64(k.SleepW) * pr.Integral(planner.Interval{To: end})
		for _, on := range plan.Nodes[n].On {
			cost += float64(k.PowerAboveSleep()) * pr.Integral(on)
			if p.Mode != planner.Offline || p.Cluster.OfflineTurnOn {
				begin := pr.Integral(planner.Interval{From: on.From, To: on.From + 1}) // a joule a second
				cost += float64(k.TurnOn) * float64(k.GPUs) * begin
			}
		}
	}
	return cost, nil
}

// BeginTimes returns from when on each task may start, seconds: its arrival, or a later time at which its run
// costs less, of those at which there will be GPUs for it, as far as is known when it arrives: as much later
// as it can wait, seconds, at most. A task with a deadline of its own doesn't wait: others may then be in
// front of it. Tasks are expected to start in the order of their arrivals.
//
// What is known is what arrived before: nothing about a task is used before it arrives.
func BeginTimes(p *planner.Problem, prices Prices, wait func(task int) float64) []float64 {
	rooms := make([]*Room, len(p.Cluster.Classes))
	for i := range p.Cluster.Classes {
		k := &p.Cluster.Classes[i]
		gpus := math.Inf(1)
		if k.Count > 0 {
			gpus = float64(k.Count * k.GPUs)
		}
		rooms[i] = NewRoom(prices, gpus)
	}
	if p.Snapshot != nil {
		for _, r := range p.Snapshot.Running {
			rooms[r.Class].AddUse(planner.Interval{From: r.Start, To: r.End},
				float64(p.Tasks[r.Task].Options[0].GPUs)*p.Tasks[r.Task].Share)
		}
	}
	runs, begins := p.RunningTasks(), make([]float64, len(p.Tasks))
	order := make([]int, 0, len(p.Tasks))
	for i := range p.Tasks {
		if begins[i] = p.Tasks[i].Arrival; runs == nil || !runs[i] {
			order = append(order, i)
		}
	}
	planner.SortByKey(order, func(i int) float64 { return p.Tasks[i].Arrival })
	for _, i := range order {
		t := &p.Tasks[i]
		class, run := cheapestClass(p, t)
		if class < 0 {
			continue
		}
		run.Latest = t.Arrival
		if math.IsInf(t.Deadline, 1) {
			run.Latest += wait(i)
		}
		begin, later := rooms[class].BestBegin(&run)
		rooms[class].AddUse(planner.Interval{From: begin, To: begin + run.Time}, run.GPUs)
		if later {
			begins[i] = begin
		}
	}
	return begins
}

// cheapestClass returns the class on which a task takes least, and its run there; -1: none suits.
func cheapestClass(p *planner.Problem, t *planner.Task) (class int, run Run) {
	class, least := -1, math.Inf(1)
	for k := range p.Cluster.Classes {
		option := t.Option(p.Cluster.Classes[k].Model)
		if !p.Cluster.Classes[k].CanRun(t, option) {
			continue
		}
		objective, o := p.ClassObjective(k), &t.Options[option]
		pt, err := o.Response.Optimum(objective, t.TimeBudget())
		if err != nil {
			pt = o.Response.Default()
		}
		if cost := objective.Cost(pt) * float64(o.GPUs); cost < least {
			class, least = k, cost
			run = Run{GPUs: float64(o.GPUs) * t.Share, Time: pt.Time, Earliest: t.Arrival, LeastGain: leastGain}
		}
	}
	return class, run
}

// leastGain is the part of what a run costs that a task must save to begin later.
const leastGain = 0.01

// DueLater returns a problem whose tasks are due as much later as they can wait; deadlines stay.
func DueLater(p *planner.Problem, wait func(task int) float64) *planner.Problem {
	later := *p
	later.Tasks = slices.Clone(p.Tasks)
	for i := range later.Tasks {
		t := &later.Tasks[i]
		t.Due = min(t.Deadline, t.Due+wait(i))
	}
	return &later
}

// Shifted returns a problem whose tasks arrive when they begin, due as by [DueLater]: what is planned of it
// is a plan of that, too, once it is counted anew. Where none begins later it returns nil.
func Shifted(p *planner.Problem, begins []float64, wait func(task int) float64) *planner.Problem {
	shifted, changed := DueLater(p, wait), false
	for i := range shifted.Tasks {
		t := &shifted.Tasks[i]
		changed = changed || begins[i] > t.Arrival
		t.Arrival = begins[i]
	}
	if !changed {
		return nil
	}
	if shifted.Mode == planner.Offline {
		shifted.Mode = planner.Clairvoyant
		if shifted.Snapshot != nil { // from the present on nothing is planned with foresight
			shifted.Mode = planner.Online
		}
	}
	return shifted
}
