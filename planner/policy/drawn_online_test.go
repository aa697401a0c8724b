package policy_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/catalog"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/join"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/queue"
)

// demoPath is where the demo's models of workloads are.
const demoPath = "../../testdata/demo/models.toml"

// traffic draws batches that arrive over time, as HPC users write them: log-normal run
// times, limits in whole hours, deadlines on some jobs, jobs of several GPUs, arrivals
// by chance, by the hour of the day, or many at once.
type traffic struct {
	*rand.Rand
	workloads []string
	runs      float64 // median run time, seconds
	spread    float64 // sigma of its logarithm
	wide      float64 // part of jobs with several GPUs
	bound     float64 // part of jobs with deadlines
	slack     float64 // of a deadline, mean, in run times
	gangs     float64 // part of jobs on several nodes
}

// drawOnline returns the problem of a seed, with between least and most jobs.
func drawOnline(tb testing.TB, seed uint64, least, most float64) *planner.Problem {
	tb.Helper()
	return drawTraffic(tb, seed, least, most, 0)
}

// drawGangsOnline is drawOnline with up to three in ten jobs on several nodes.
func drawGangsOnline(tb testing.TB, seed uint64, least, most float64) *planner.Problem {
	tb.Helper()
	rng := rand.New(rand.NewPCG(seed, 19))
	return drawTraffic(tb, seed, least, most, []float64{0.02, 0.1, 0.3}[rng.IntN(3)])
}

// drawTraffic returns the problem of a seed with a part of its jobs on several nodes.
func drawTraffic(tb testing.TB, seed uint64, least, most, gangs float64) *planner.Problem {
	tb.Helper()
	return drawBelieved(tb, seed, least, most, gangs, nil)
}

// drawBelieved is drawTraffic whose jobs are believed to take other times than what limits, deadlines and
// arrivals are drawn by.
func drawBelieved(
	tb testing.TB, seed uint64, least, most, gangs float64, believe func(i int, job *queue.Job),
) *planner.Problem {
	tb.Helper()
	text, err := os.ReadFile(demoPath)
	if err != nil {
		tb.Fatal(err)
	}
	models, err := config.ReadModels(bytes.NewReader(text), demoPath)
	if err != nil {
		tb.Fatal(err)
	}
	r := &traffic{Rand: rand.New(rand.NewPCG(seed, 18)), workloads: models.Workloads()}
	cluster, measuredOn := r.cluster()
	r.gangs = gangs
	batch := r.batch(int(least*math.Pow(most/least, r.Float64())), measuredOn)
	r.widen(batch, &cluster, seed)
	p := &planner.Problem{Cluster: cluster, Mode: planner.Online, Objective: dvfsmodel.MinEnergy()}
	scaling := dvfsmodel.WideRange()
	catalog := catalog.New(config.BuiltinProfiles(), models, &scaling)
	join := func() {
		if p.Tasks, _, err = join.Tasks(batch, &cluster, catalog, join.Margins{Limit: 0.1}); err != nil {
			tb.Fatal(err)
		}
	}
	join() // to know what work there is
	r.arrivals(p, batch)
	for i := range batch.Jobs {
		if believe != nil {
			believe(i, &batch.Jobs[i])
		}
	}
	join()
	if err := policy.ImplyDue(context.Background(), p, 1.5); err != nil {
		tb.Fatal(err)
	}
	return p
}

// drawWindow returns the problem of a seed with the arrivals, run times and GPUs of jobs that follow
// each other in a public log, on a drawn cluster with a load between .4 and 1.6.
func drawWindow(tb testing.TB, seed uint64) *planner.Problem {
	tb.Helper()
	rows := shareddata.Rows(tb, shareddata.Path(tb, "jobs/philly_chronus.csv"))
	text, err := os.ReadFile(demoPath)
	if err != nil {
		tb.Fatal(err)
	}
	models, err := config.ReadModels(bytes.NewReader(text), demoPath)
	if err != nil {
		tb.Fatal(err)
	}
	r := &traffic{Rand: rand.New(rand.NewPCG(seed, 77)), workloads: models.Workloads()}
	cluster, measuredOn := r.cluster()
	count := 100 + r.IntN(300)
	rows = rows[r.IntN(len(rows)-count):][:count]
	begin := shareddata.Number(tb, rows[0]["submit_s"])
	batch, work, gpus := &queue.Batch{Name: "window"}, 0.0, 0.0
	for i, row := range rows {
		j := queue.NewJob(fmt.Sprintf("p%04d", i))
		j.Workload = r.workloads[r.IntN(len(r.workloads))]
		j.Runtime, j.RuntimeModel = shareddata.Number(tb, row["runtime_s"]), measuredOn
		j.GPUs[0].Count = max(1, min(4, int(shareddata.Number(tb, row["gpus"]))))
		j.Arrival = shareddata.Number(tb, row["submit_s"]) - begin + 60*r.Float64()
		work += j.Runtime * float64(j.GPUs[0].Count)
		batch.Jobs = append(batch.Jobs, j)
	}
	for _, k := range cluster.Classes {
		gpus += float64(k.Count * k.GPUs)
	}
	span := work / gpus / (0.4 * math.Pow(4, r.Float64()))
	for i, last := 0, batch.Jobs[count-1].Arrival; i < count; i++ {
		batch.Jobs[i].Arrival = math.Ceil(batch.Jobs[i].Arrival * span / last)
	}
	p := &planner.Problem{Cluster: cluster, Mode: planner.Online, Objective: dvfsmodel.MinEnergy()}
	scaling := dvfsmodel.WideRange()
	catalog := catalog.New(config.BuiltinProfiles(), models, &scaling)
	if p.Tasks, _, err = join.Tasks(batch, &cluster, catalog, join.Margins{Limit: 0.1}); err != nil {
		tb.Fatal(err)
	}
	if err := policy.ImplyDue(context.Background(), p, 1.5); err != nil {
		tb.Fatal(err)
	}
	return p
}

// cluster has nodes of one or both of the demo's GPU models; run times are of the
// second value.
func (r *traffic) cluster() (planner.Cluster, string) {
	profiles := config.BuiltinProfiles()
	all := [][]string{{"V100"}, {"GTX1080Ti"}, {"V100", "GTX1080Ti"}, {"V100", "GTX1080Ti"}}[r.IntN(4)]
	c := planner.Cluster{Name: "drawn"}
	names := [][]string{{"fast", "small"}, {"new", "fast"}}[r.IntN(2)] // EASY goes by name
	for i, model := range all {
		profile, err := profiles.Lookup(model)
		if err != nil {
			panic(err)
		}
		c.Classes = append(c.Classes, planner.NodeClass{
			Name: names[i], Model: profile.Name,
			Count: 2 + r.IntN(7), GPUs: 4, CPUs: 32, IdleW: profile.IdleW, HostW: profile.HostW, TurnOn: 2000,
			TurnOnDelay: 60,
		})
	}
	return c, c.Classes[0].Model
}

// batch draws n jobs that all arrive at 0.
func (r *traffic) batch(n int, measuredOn string) *queue.Batch {
	const minute = 60
	r.runs = minute * (10 + 110*r.Float64())
	r.spread = 0.8 + 0.7*r.Float64()
	r.wide = 0.5 * r.Float64()
	r.bound = []float64{0, 0.1, 0.3}[r.IntN(3)]
	r.slack = []float64{1, 3, 10}[r.IntN(3)]
	b := &queue.Batch{Name: "drawn"}
	for i := range n {
		j := queue.NewJob(fmt.Sprintf("j%04d", i))
		j.Workload = r.workloads[r.IntN(len(r.workloads))]
		j.Runtime, j.RuntimeModel = max(10, math.Round(r.runs*math.Exp(r.spread*r.NormFloat64()))), measuredOn
		if r.Float64() < r.wide {
			j.GPUs[0].Count = []int{2, 2, 3, 4}[r.IntN(4)]
		}
		j.CPUs = float64(4 * j.GPUs[0].Count)
		b.Jobs = append(b.Jobs, j)
	}
	return b
}

// widen has a part of the jobs run on several nodes, as many as some class has. What else
// is drawn of the jobs stays.
func (r *traffic) widen(b *queue.Batch, c *planner.Cluster, seed uint64) {
	if r.gangs == 0 {
		return
	}
	most := 0
	for i := range c.Classes {
		most = max(most, c.Classes[i].Count)
	}
	own := rand.New(rand.NewPCG(seed, 20))
	for i := range b.Jobs {
		if j := &b.Jobs[i]; own.Float64() < r.gangs {
			j.Nodes = min(most, []int{2, 2, 2, 3, 4, 4, 8}[own.IntN(7)])
			j.GPUs[0].Count = j.Nodes * []int{1, 2, 4, 4, 4}[own.IntN(5)]
			j.CPUs = float64(4 * j.GPUs[0].Count)
		}
	}
}

// arrivals draws when the jobs arrive, for a load between .3 and 3, and then limits
// and deadlines. The problem has the jobs as far as they are drawn.
func (r *traffic) arrivals(p *planner.Problem, b *queue.Batch) {
	const hour, day = 3600, 86400
	work, gpus := 0.0, 0.0
	longest := make([]float64, len(b.Jobs)) // by job: run time on the slowest GPU model
	for i := range p.Tasks {
		mean := 0.0
		for _, o := range p.Tasks[i].Options {
			t := o.Response.Default().Time
			mean, longest[i] = mean+t*float64(o.GPUs)/float64(len(p.Tasks[i].Options)), max(longest[i], t)
		}
		work += mean
	}
	for _, k := range p.Cluster.Classes {
		gpus += float64(k.Count * k.GPUs)
	}
	span := work / gpus / (0.3 * math.Pow(10, r.Float64()))
	shape, at := r.IntN(3), make([]float64, 0, len(b.Jobs))
	for len(at) < len(b.Jobs) {
		t := span * r.Float64()
		switch shape {
		case 1: // most arrive by day
			if night := math.Cos(2 * math.Pi * t / day); r.Float64() < 0.5+0.45*night {
				continue
			}
			at = append(at, t)
		case 2: // users submit several at once
			for range 1 + r.IntN(12) {
				at = append(at, t)
			}
		default:
			at = append(at, t)
		}
	}
	at = at[:len(b.Jobs)]
	slices.Sort(at)
	for i := range b.Jobs {
		j := &b.Jobs[i]
		j.Arrival = math.Round(at[i])
		if r.IntN(8) > 0 {
			j.Limit = hour * math.Ceil(longest[i]*(1.2+2*r.Float64())/hour)
		}
		if r.Float64() < r.bound {
			j.Deadline = j.Arrival + 120 + longest[i]*(1.2+r.slack*r.ExpFloat64())
		}
	}
}

// service is what users and the site get of a plan.
type service struct {
	energy       float64 // J
	mean, p95    float64 // turnaround, seconds
	wait         float64 // mean, seconds
	waited       float64 // GPU-seconds in all
	misses, late int     // deadlines missed; jobs past due
	lost         int     // jobs left out
	slow         int     // jobs whose run takes longer than 1.5 times that at default clocks
}

// serviceOf measures a plan.
func serviceOf(p *planner.Problem, plan *planner.Plan) service {
	o := service{
		energy: float64(plan.Ledger.Total()), misses: len(plan.Misses), late: len(plan.PastDue(p)),
		lost: len(plan.Unplaced),
	}
	var all []float64
	for i := range plan.Assignments {
		a := &plan.Assignments[i]
		if a.Node < 0 {
			continue
		}
		all = append(all, a.End-p.Tasks[i].Arrival)
		o.wait += a.Start - p.Tasks[i].Arrival
		if a.End-a.Start > 1.5*p.Tasks[i].Options[a.Option].Response.Default().Time*(1+1e-9) {
			o.slow++
		}
	}
	slices.Sort(all)
	o.wait /= float64(len(all))
	for _, t := range all {
		o.mean += t / float64(len(all))
	}
	o.p95 = all[int(math.Ceil(0.95*float64(len(all))))-1]
	return o
}
