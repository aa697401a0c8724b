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

// Over returns the integral of the price over a time: power times it is what the energy costs.
func (pr Prices) Over(during planner.Interval) (sum float64) {
	if len(pr.Function) == 0 {
		return 0
	}
	if first := pr.Function[0]; during.From < first.From {
		sum = first.Value * (min(during.To, first.From) - during.From)
		during.From = min(during.To, first.From)
	}
	for part, price := range pr.During(during) {
		sum += price * part.Len()
	}
	return sum
}

// ErrShared tells that GPUs are shared by profile: what each task takes over time isn't known.
var ErrShared = errors.New("hours don't count for jobs that share GPUs by profile: want another policy")

// Cost returns what the energy of a plan costs: runs, idle GPUs, hosts, sleep and switching on, as
// [planner.Account] has them.
func (pr Prices) Cost(p *planner.Problem, plan *planner.Plan) (float64, error) {
	if plan.Shared != nil {
		return 0, ErrShared
	}
	cost, end := 0.0, 0.0
	for n := range plan.Nodes {
		for _, on := range plan.Nodes[n].On {
			end = max(end, on.To)
		}
	}
	for i := range plan.Assignments {
		a := &plan.Assignments[i]
		if a.Node < 0 {
			continue
		}
		watts := plan.AboveIdle(p, &p.Tasks[i], a)
		cost += float64(watts) * pr.Over(planner.Interval{From: a.Start, To: a.End})
	}
	for n := range plan.Nodes {
		k := &p.Cluster.Classes[plan.Nodes[n].Class]
		cost += float64(k.SleepW) * pr.Over(planner.Interval{To: end})
		for _, on := range plan.Nodes[n].On {
			cost += float64(k.AboveSleep()) * pr.Over(on)
			if p.Mode != planner.Offline || p.Cluster.OfflineTurnOn {
				begin := pr.Over(planner.Interval{From: on.From, To: on.From + 1}) // a joule a second
				cost += float64(k.TurnOn) * float64(k.GPUs) * begin
			}
		}
	}
	return cost, nil
}

// Begins returns from when on each task may start, seconds: its arrival, or a later time at which its run
// costs less, of those at which there will be GPUs for it, as far as is known when it arrives: as much later
// as it can wait, seconds, at most. A task with a deadline of its own doesn't wait: others may then be in
// front of it. Tasks are expected to start in the order of their arrivals.
//
// What is known is what arrived before: nothing about a task is used before it arrives.
func Begins(p *planner.Problem, prices Prices, wait func(task int) float64) []float64 {
	b := &beginner{p: p, prices: prices}
	for i := range p.Cluster.Classes {
		k := &p.Cluster.Classes[i]
		b.capacity = append(b.capacity, math.Inf(1))
		if k.Count > 0 {
			b.capacity[i] = float64(k.Count * k.GPUs)
		}
		b.used = append(b.used, steps.Constant(0.0))
	}
	if p.Snapshot != nil {
		for _, r := range p.Snapshot.Running {
			gpus := float64(p.Tasks[r.Task].Options[0].GPUs) * p.Tasks[r.Task].Share
			b.used[r.Class].Add(planner.Interval{From: r.Start, To: r.End}, gpus)
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
		begins[i] = b.begin(i, wait(i))
	}
	return begins
}

// beginner is the GPUs that tasks are expected to have.
type beginner struct {
	p        *planner.Problem
	prices   Prices
	capacity []float64                 // GPUs by class
	used     []steps.Function[float64] // likewise
}

// mostUsed is the part of a class's GPUs that tasks which wait may be expected to use: who comes later has the
// rest.
const mostUsed = 0.9

// leastGain is the part of what a run costs that a task must save to begin later.
const leastGain = 0.01

// begin chooses when a task begins, and notes the GPUs that it has then.
func (b *beginner) begin(task int, wait float64) float64 {
	t := &b.p.Tasks[task]
	class, run := b.place(t)
	if class < 0 {
		return t.Arrival
	}
	gpus := float64(run.gpus) * t.Share
	earliest := b.room(class, gpus, t.Arrival, run.time)
	begin := earliest
	latest := t.Arrival + wait
	if latest > earliest && math.IsInf(t.Deadline, 1) {
		least := b.prices.Over(planner.Interval{From: earliest, To: earliest + run.time})
		least -= leastGain * math.Abs(least)
		for _, at := range b.candidates(class, earliest, latest, run.time) {
			cost := b.prices.Over(planner.Interval{From: at, To: at + run.time})
			if cost < least && b.fits(class, gpus, at, run.time) {
				least, begin = cost, at
			}
		}
	}
	b.used[class].Add(planner.Interval{From: begin, To: begin + run.time}, gpus)
	if begin == earliest {
		return t.Arrival
	}
	return begin
}

// candidates are the times at which a run may cost least: where it begins or ends with a price, or begins
// with GPUs that come free; ascending.
func (b *beginner) candidates(class int, earliest, latest, run float64) []float64 {
	var all []float64
	add := func(at float64) {
		if at > earliest && at <= latest {
			all = append(all, at)
		}
	}
	for part := range b.prices.During(planner.Interval{From: earliest, To: latest + run}) {
		add(part.From)
		add(part.From - run)
	}
	for part := range b.used[class].During(planner.Interval{From: earliest, To: latest}) {
		add(part.From)
	}
	add(latest)
	slices.Sort(all)
	return slices.Compact(all)
}

// expectedRun is how a task is expected to run.
type expectedRun struct {
	gpus int
	time float64 // seconds
}

// place returns the class on which a task takes least; -1: none suits.
func (b *beginner) place(t *planner.Task) (class int, run expectedRun) {
	class, least := -1, math.Inf(1)
	for k := range b.p.Cluster.Classes {
		option := t.Option(b.p.Cluster.Classes[k].Model)
		if !b.p.Cluster.Classes[k].CanRun(t, option) {
			continue
		}
		objective, o := b.p.ClassObjective(k), &t.Options[option]
		pt, err := o.Response.Optimum(objective, t.TimeBudget())
		if err != nil {
			pt = o.Response.Default()
		}
		if cost := objective.Cost(pt) * float64(o.GPUs); cost < least {
			class, least, run = k, cost, expectedRun{o.GPUs, pt.Time}
		}
	}
	return class, run
}

// fits reports whether a class has as many GPUs from a time on for a run.
func (b *beginner) fits(class int, gpus, at, run float64) bool {
	_, most := b.used[class].Over(planner.Interval{From: at, To: at + run})
	return most+gpus <= mostUsed*b.capacity[class]*(1+1e-9)
}

// room returns the first time from which on a class has as many GPUs for a run.
func (b *beginner) room(class int, gpus, from, run float64) float64 {
	begin := from
	for part, used := range b.used[class].During(planner.Interval{From: from, To: math.Inf(1)}) {
		if part.From >= begin+run {
			break
		}
		if used+gpus > b.capacity[class]*(1+1e-9) {
			begin = part.To
		}
	}
	if math.IsInf(begin, 1) { // it never has
		return from
	}
	return begin
}

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
