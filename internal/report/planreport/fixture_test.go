package planreport_test

import (
	"bytes"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/report/planreport"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/bound"
	"github.com/epplan/epplan/planner/policy"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// rounded cuts what a golden file shows to three decimals: the last digits of
// a sum are the processor's own.
func rounded(r *planreport.Result) *planreport.Result {
	cut := func(values ...*float64) {
		for _, v := range values {
			*v = math.Round(*v*1000) / 1000
		}
	}
	for i := range r.Plan.Assignments {
		a := &r.Plan.Assignments[i]
		pt := &a.Point
		cut(&a.Start, &a.End, &pt.Time, (*float64)(&pt.Power), (*float64)(&pt.Energy),
			(*float64)(&pt.Scaling.V), &pt.Scaling.Fc, &pt.Scaling.Fm)
	}
	for i := range r.Plan.Unplaced {
		cut(&r.Plan.Unplaced[i].Earliest)
	}
	l := &r.Plan.Ledger
	cut((*float64)(&l.Run), (*float64)(&l.Idle), (*float64)(&l.TurnOn), (*float64)(&r.Baseline),
		(*float64)(&r.Bound.Value), &r.Bound.Cost)
	return r
}

// golden compares text with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test -update rewrites it); got:\n%s", path, got)
	}
}

// workload returns a made-up model of about the given seconds and watts.
func workload(tb testing.TB, seconds, watts, delta float64) dvfsmodel.Response {
	tb.Helper()
	r, err := dvfsmodel.RangeByName("wide")
	if err != nil {
		tb.Fatal(err)
	}
	return &dvfsmodel.Continuous{Range: &r, Params: dvfsmodel.Params{
		P0: dvfsmodel.Watt(.35 * watts), Gamma: dvfsmodel.Watt(.15 * watts), C: dvfsmodel.Watt(.5 * watts),
		D: .9 * seconds, Delta: delta, T0: .1 * seconds,
	}}
}

// task returns a job of one GPU on model "x".
func task(id string, deadline float64, r dvfsmodel.Response) planner.Task {
	return planner.Task{
		ID: id, Deadline: deadline, Due: deadline, Limit: math.Inf(1), Share: 1,
		Options: []planner.Option{{Model: "x", GPUs: 1, Response: r}},
	}
}

// smallProblem has a tight job, one without a deadline, one whose name would
// act on a terminal, and one that no clocks can save.
func smallProblem(tb testing.TB) *planner.Problem {
	tb.Helper()
	p := &planner.Problem{
		Cluster: planner.Cluster{Name: "small", Slot: 1, Classes: []planner.NodeClass{
			{Name: "pair", Model: "x", GPUs: 2, IdleW: 30, TurnOn: 90},
		}},
		Tasks: []planner.Task{
			task("train-resnet", 400, workload(tb, 300, 220, .8)),
			task("tight", 100, workload(tb, 98, 180, .9)),
			task("no-deadline", math.Inf(1), workload(tb, 250, 150, .2)),
			task("evil\x1b[31m<b>&\u202e", 900, workload(tb, 120, 200, .5)),
			task("impossible", 40, workload(tb, 100, 200, .5)),
			task("short", 500, workload(tb, 30, 240, .6)),
		},
	}
	return p
}

// lateProblem has two jobs for one GPU and room for one of them in time.
func lateProblem(tb testing.TB) *planner.Problem {
	tb.Helper()
	return &planner.Problem{
		Cluster: planner.Cluster{
			Name: "one", Slot: 1,
			Classes: []planner.NodeClass{{Name: "one", Model: "x", GPUs: 1, Count: 1, IdleW: 30}},
		},
		Tasks: []planner.Task{
			task("first", 120, workload(tb, 100, 220, .8)),
			task("second", 130, workload(tb, 100, 220, .8)),
		},
	}
}

// gangProblem has jobs on two and on three nodes of two GPUs, where a single one leaves
// them different ones.
func gangProblem(tb testing.TB) *planner.Problem {
	tb.Helper()
	p := &planner.Problem{Cluster: planner.Cluster{Name: "pairs", Slot: 1, Classes: []planner.NodeClass{
		{Name: "pair", Model: "x", GPUs: 2, Count: 4, IdleW: 30, TurnOn: 90},
		{Name: "other", Model: "y", GPUs: 1},
	}}}
	for i, size := range [...]struct{ gpus, nodes int }{{1, 1}, {2, 2}, {6, 3}, {2, 2}} {
		job := task("job-"+strconv.Itoa(i), 4000, workload(tb, 300, 200, .5))
		job.Options[0].GPUs, job.Options[0].Nodes = size.gpus, size.nodes
		p.Tasks = append(p.Tasks, job)
	}
	return p
}

// manyProblem is online: n jobs that arrive over an hour.
func manyProblem(tb testing.TB, n int) *planner.Problem {
	tb.Helper()
	p := &planner.Problem{
		Mode: planner.Online, Cluster: planner.Cluster{Slot: 1, Classes: []planner.NodeClass{
			{Name: "octo", Model: "x", GPUs: 8, IdleW: 30, TurnOn: 90},
		}},
	}
	for i := range n {
		seconds := 60 + float64(i*7919%600)
		arrival := float64(i * 7717 % 3600)
		job := task("job-"+strconv.Itoa(i), arrival+seconds*(1.1+float64(i%11)/4),
			workload(tb, seconds, 150+float64(i%5)*20, float64(i%10)/10))
		job.Arrival = arrival
		p.Tasks = append(p.Tasks, job)
	}
	return p
}

// solve plans with a policy. Baseline and bound are made up in proportion, so
// that the figures derived from them are known.
func solve(tb testing.TB, p *planner.Problem, name string) *planreport.Result {
	tb.Helper()
	pol, err := policy.Parse(name, policy.DefaultParams())
	if err != nil {
		tb.Fatal(err)
	}
	plan, err := planner.Solve(tb.Context(), p, pol, nil)
	if err != nil {
		tb.Fatal(err)
	}
	total := plan.Ledger.Total()
	return &planreport.Result{
		Problem: p, Plan: plan, Baseline: total * 1.25,
		Bound: bound.Bound{Value: total / 1.01, Cost: float64(total) / 1.01},
	}
}
