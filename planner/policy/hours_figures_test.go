package policy_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/hours"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/planner/steps"
)

// Figures of jobs that wait for cheap or clean hours, over windows of a public log, printed where they are
// asked for:
//
//	go test ./planner/policy -v -run xxx -bench HoursFigures -benchtime 1x -hours 'replan,pace=1' -seeds 1:100
var (
	hoursFigures = flag.String("hours", "", "the policy to print figures of jobs that wait for hours of")
	hoursInSlurm = flag.Bool("hours-in-slurm", false, "by the rule of a daemon beside Slurm: see beginsInSlurm")
)

func BenchmarkHoursFigures(b *testing.B) {
	if *hoursFigures == "" {
		b.Skip("-hours names no policy")
	}
	var first, last uint64
	if _, err := fmt.Sscanf(*onlineSeeds, "%d:%d", &first, &last); err != nil {
		b.Fatal(err)
	}
	for _, swing := range []float64{0.4, 0.25} {
		for _, slack := range []float64{1, 4, 12} {
			sums := map[string]*hourFigures{"all": {}, "waits below half an hour": {}}
			for seed := first; seed <= last; seed++ {
				p := drawWindow(b, seed)
				giveDeadlines(b, p, seed)
				one := playHours(b, p, drawPrices(seed, swing), slack*3600)
				sums["all"].add(&one)
				if one.waited < 1800 {
					sums["waits below half an hour"].add(&one)
				}
			}
			for name, f := range sums {
				cost, half := meanOf(f.cost)
				energy, _ := meanOf(f.energy)
				possible, _ := meanOf(f.possible)
				later, _ := meanOf(f.later)
				b.Logf("swing %.0f %%, slack %v h, %s, %d windows: cost %.4f±%.4f (with GPUs without end %.4f) "+
					"energy %.4f turnaround %+.2f h, deadlines %+d, past due %+d of %d", 100*swing, slack, name,
					len(f.cost), cost, half, possible, energy, later/3600, f.missed, f.late, f.tasks)
			}
		}
	}
}

// hourFigures compare a queue whose jobs can wait with the same one where they begin at once.
type hourFigures struct {
	cost, energy, later []float64 // by window: ratios, and mean turnaround, seconds
	possible            []float64 // ratios of the cost of runs, if each began when it costs least
	waited              float64   // mean wait where they begin at once, seconds
	missed, late, tasks int       // deadlines, jobs past their due times and what they can wait
}

func (f *hourFigures) add(one *hourFigures) {
	f.cost, f.energy = append(f.cost, one.cost...), append(f.energy, one.energy...)
	f.later, f.possible = append(f.later, one.later...), append(f.possible, one.possible...)
	f.missed, f.late, f.tasks = f.missed+one.missed, f.late+one.late, f.tasks+one.tasks
}

// playHours plans a window with jobs that can wait and with such as can't.
func playHours(b *testing.B, p *planner.Problem, prices hours.Prices, slack float64) hourFigures {
	b.Helper()
	wait := func(int) float64 { return slack }
	base, late := pastDue(b, p, *hoursFigures)
	begins := hours.BeginTimes
	if *hoursInSlurm {
		begins = beginsInSlurm
	}
	shifted := cmp.Or(hours.Shifted(p, begins(p, prices, wait), wait), p)
	plan, lateThen := pastDue(b, shifted, *hoursFigures)
	was, err := prices.Cost(p, base)
	now, err2 := prices.Cost(p, plan)
	if err = cmp.Or(err, err2); err != nil {
		b.Fatal(err)
	}
	before, after := serviceOf(p, base), serviceOf(p, plan)
	at, least := 0.0, 0.0
	for i := range base.Assignments {
		a := &base.Assignments[i]
		watts, during := float64(a.Power(&p.Tasks[i])), planner.Interval{From: a.Start, To: a.End}
		cost := prices.Integral(during)
		at += watts * cost
		for later := 0.0; later <= slack; later += 900 {
			cost = min(cost, prices.Integral(planner.Interval{From: during.From + later, To: during.To + later}))
		}
		least += watts * cost
	}
	return hourFigures{
		cost: []float64{now / was}, energy: []float64{after.energy / before.energy},
		later: []float64{after.mean - before.mean}, possible: []float64{least / at}, waited: before.wait,
		missed: after.misses - before.misses, late: lateThen - late, tasks: len(p.Tasks),
	}
}

// beginsInSlurm returns when tasks begin by the rule that holds in Slurm: one waits only if GPUs are free for
// it at once, to save a twentieth or more, and as soon as another has waited for GPUs for a minute all that
// wait for their hour are released.
func beginsInSlurm(p *planner.Problem, prices hours.Prices, wait func(task int) float64) []float64 {
	q := &hourQueue{p: p, begins: make([]float64, len(p.Tasks))}
	for i := range p.Cluster.Classes {
		k := &p.Cluster.Classes[i]
		q.rooms = append(q.rooms, hours.NewRoom(prices, float64(k.Count*k.GPUs)))
	}
	order := make([]int, len(p.Tasks))
	for i := range order {
		order[i] = i
	}
	planner.SortByKey(order, func(i int) float64 { return p.Tasks[i].Arrival })
	for _, i := range order {
		q.arrive(i, wait(i))
	}
	return q.begins
}

// hourQueue is tasks that wait for their hour, and the GPUs of each class.
type hourQueue struct {
	p       *planner.Problem
	rooms   []*hours.Room
	begins  []float64
	waiting []hourWaiter
}

type hourWaiter struct {
	task, class int
	run         hours.Run
}

// arrive notes when a task begins.
func (q *hourQueue) arrive(task int, slack float64) {
	const minute = 60
	t := &q.p.Tasks[task]
	q.begins[task] = t.Arrival
	class, run := q.place(t)
	if class < 0 {
		return
	}
	begin := q.rooms[class].First(&run)
	if begin > t.Arrival+minute { // it waits for GPUs
		q.release(class, t.Arrival+minute)
		begin = q.rooms[class].First(&run)
	} else if math.IsInf(t.Deadline, 1) {
		run.Latest += slack
		if at, later := q.rooms[class].BestBegin(&run); later {
			begin, q.begins[task] = at, at
			q.waiting = append(q.waiting, hourWaiter{task, class, run})
		}
	}
	q.rooms[class].AddUse(planner.Interval{From: begin, To: begin + run.Time}, run.GPUs)
}

// place returns where a task uses least at default clocks, and its run there; -1: nowhere.
func (q *hourQueue) place(t *planner.Task) (class int, run hours.Run) {
	class, least := -1, math.Inf(1)
	for k := range q.p.Cluster.Classes {
		option := t.Option(q.p.Cluster.Classes[k].Model)
		if !q.p.Cluster.Classes[k].CanRun(t, option) {
			continue
		}
		o := &t.Options[option]
		pt := o.Response.Default()
		if energy := float64(pt.Energy) * float64(o.GPUs); energy < least {
			class, least = k, energy
			run = hours.Run{
				GPUs: float64(o.GPUs) * t.Share, Time: pt.Time, Earliest: t.Arrival, Latest: t.Arrival,
				LeastGain: 0.05,
			}
		}
	}
	return class, run
}

// release has those begin that wait for their hour in a class.
func (q *hourQueue) release(class int, at float64) {
	room := q.rooms[class]
	for _, w := range q.waiting {
		if began := q.begins[w.task]; w.class == class && began > at {
			room.AddUse(planner.Interval{From: began, To: began + w.run.Time}, -w.run.GPUs)
			q.begins[w.task], w.run.Earliest = at, at
			from := room.First(&w.run)
			room.AddUse(planner.Interval{From: from, To: from + w.run.Time}, w.run.GPUs)
		}
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(w hourWaiter) bool { return w.class == class })
}

// giveDeadlines gives a fifth of the jobs deadlines.
func giveDeadlines(b *testing.B, p *planner.Problem, seed uint64) {
	b.Helper()
	rng := rand.New(rand.NewPCG(seed, 55))
	for i := range p.Tasks {
		t := &p.Tasks[i]
		if t.Deadline, t.Due = math.Inf(1), math.Inf(1); rng.IntN(5) == 0 {
			longest := 0.0
			for k := range t.Options {
				longest = max(longest, t.Options[k].Response.Default().Time)
			}
			t.Deadline = t.Arrival + 120 + longest*(1.2+3*rng.ExpFloat64())
			t.Due = t.Deadline
		}
	}
	if err := policy.ImplyDue(context.Background(), p, 1.5); err != nil {
		b.Fatal(err)
	}
}

// drawPrices draws hourly prices of a year, which begins before time 0, from 1 by so much up and down: by the
// hour of the day, with a peak in the evening, lower at weekends, and by weather that lasts for days.
func drawPrices(seed uint64, swing float64) hours.Prices {
	rng := rand.New(rand.NewPCG(seed, 54))
	const year, hour, day = 8760, 3600, 24
	begin, weather := rng.IntN(year/2), 0.0
	var pr hours.Prices
	for h := range year {
		weather = 0.97*weather + 0.1*rng.NormFloat64()
		at := float64(h % day)
		shape := -math.Cos(2*math.Pi*(at-4)/day) + 0.5*math.Cos(4*math.Pi*(at-19)/day)
		if h/day%7 >= 5 {
			shape -= 0.4
		}
		pr.Function = append(pr.Function, steps.Step[float64]{
			From: float64(h-begin) * hour, Value: max(0.05, 1+swing*(0.7*shape+0.5*weather)),
		})
	}
	return pr
}
