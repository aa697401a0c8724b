package control

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/decide"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// onNode returns a request of job 100's run on a node.
func onNode(node string) *epdapi.DecideRequest {
	request := ask(100)
	request.Node, request.RunID = node, "run-100-"+node
	return request
}

// spread starts a job on several nodes.
func (r *rig) spread(id slurm.JobID) slurm.Job {
	return r.job(id, func(j *slurm.Job) { j.NodeCount, j.Start = 3, r.clock.read() })
}

// taught returns a controller that knows the workload of [rig.job].
func taught(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, nil)
	for id := range slurm.JobID(3) {
		r.run(id+1, memoryBound())
	}
	return r
}

func same(t *testing.T, what string, a, b live.Decision) {
	t.Helper()
	if a.Apply != b.Apply || a.Core != b.Core || a.Mem != b.Mem || a.Arm != b.Arm ||
		a.ModelVersion != b.ModelVersion ||
		a.Mode != b.Mode || a.ConfigVersion != b.ConfigVersion || a.Reason != b.Reason {
		t.Errorf("%s: %+v\nthe first node: %+v", what, b, a)
	}
}

func TestNodesOfOneRunAreDecidedAlikeWhateverHappensInBetween(t *testing.T) {
	for name, between := range map[string]func(*rig){
		"nothing": func(*rig) {},
		"a refit": func(r *rig) {
			before := r.learner.Model(r.key()).Model.Version
			if r.run(50, memoryBound().Scale(1.05)); r.learner.Model(r.key()).Model.Version == before {
				r.t.Error("there was no refit")
			}
		},
		"no model": func(r *rig) { _ = r.useModel(r.key(), 0, "") },
		"a reload": func(r *rig) {
			_ = r.Reload(func() (*Settings, error) { return settings(r.t, mode(live.Observe)), nil })
		},
		"a hour": func(r *rig) { r.clock.move(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			r := taught(t)
			r.spread(100)
			first := r.decide(onNode("n1"))
			if !first.Apply {
				t.Fatal(first.Reason)
			}
			version := r.learner.Model(r.key()).Model.Version
			between(r)
			second, third := onNode("n2"), onNode("n3")
			third.GPUs = 3
			d2, d3 := r.decide(second), r.decide(third)
			same(t, "the second node", first, d2)
			same(t, "the third node", first, d3)
			if d2.Node != "n2" || d2.ID == first.ID || first.ModelVersion != version {
				t.Errorf("%+v", d2)
			}
			if one, three := first.EnergyJ.Or(0), d3.EnergyJ.Or(0); three < 2.999*one || three > 3.001*one {
				t.Errorf("one GPU takes %v J, three take %v", one, three)
			}
			same(t, "asked again", first, r.decide(second))
		})
	}
}

func TestNodesThatAskAtOnceAreDecidedAlike(t *testing.T) {
	r := taught(t)
	r.spread(100)
	const nodes = 16
	answers := make([]live.Decision, nodes)
	var all sync.WaitGroup
	for i := range nodes {
		all.Go(func() {
			answers[i], _ = r.Decide(context.Background(), onNode(fmt.Sprintf("n%d", i)))
		})
		if i == nodes/2 {
			all.Go(func() {
				_ = r.Reload(func() (*Settings, error) { return settings(t, mode(live.Observe)), nil })
			})
		}
	}
	all.Wait()
	for i := range answers {
		same(t, fmt.Sprintf("node %d", i), answers[0], answers[i])
	}
}

func TestNodesOfOneRunAreDecidedAlikeOverARestart(t *testing.T) {
	r := taught(t)
	j := r.spread(100)
	first := r.decide(onNode("n1"))
	r.flush()
	again := rigAt(t, r.path, r.clock, mode(live.Observe), nil)
	again.Jobs.Observe([]slurm.Job{j})
	same(t, "the second node", first, again.decide(onNode("n2")))
	other := onNode("n3")
	// Without the first node's clocks.
	other.Clocks = []epdapi.ClockGroup{{Mem: 877, Core: []dvfsmodel.MHz{1380, 1200}}}
	if d := again.decide(other); d.Apply || d.Mode != live.Observe {
		t.Errorf("a device with other clocks: %+v", d)
	}
}

func TestOtherRunsAndOtherGPUsAreDecidedOnTheirOwn(t *testing.T) {
	for name, tc := range map[string]struct {
		job     func(*rig)
		request func(*epdapi.DecideRequest)
	}{
		"another model": {func(*rig) {}, func(q *epdapi.DecideRequest) { q.GPUModel = "H100" }},
		"other clocks": {func(*rig) {}, func(q *epdapi.DecideRequest) {
			q.Clocks[0].Core = q.Clocks[0].Core[:4]
		}},
		"shared GPUs":       {func(*rig) {}, func(q *epdapi.DecideRequest) { q.Shared = true }},
		"no GPUs":           {func(*rig) {}, func(q *epdapi.DecideRequest) { q.GPUs = 0 }},
		"a run after it":    {func(r *rig) { r.spread(100) }, func(*epdapi.DecideRequest) {}},
		"another array job": {func(r *rig) { r.spread(101) }, func(q *epdapi.DecideRequest) { q.Job = 101 }},
	} {
		t.Run(name, func(t *testing.T) {
			r := taught(t)
			r.spread(100)
			first := r.decide(onNode("n1"))
			if err := r.Reload(func() (*Settings, error) {
				return settings(t, mode(live.Advise)),
					nil
			}); err != nil {
				t.Fatal(err)
			}
			tc.job(r)
			request := onNode("n2")
			tc.request(request)
			if d := r.decide(request); d.Mode != live.Advise || !first.Apply {
				t.Errorf("%+v", d)
			}
		})
	}
}

func TestTasksOfAnArrayAreJobsOfTheirOwn(t *testing.T) {
	r := taught(t)
	task := func(id slurm.JobID, n int) *epdapi.DecideRequest {
		r.job(id, func(j *slurm.Job) { j.ArrayJob, j.ArrayTask = 203, n })
		return ask(id)
	}
	first := r.decide(task(201, 0))
	r.run(50, memoryBound().Scale(1.05))
	second := r.decide(task(202, 1))
	if second.ModelVersion == first.ModelVersion || first.Workload != second.Workload {
		t.Errorf("%+v\nafter a refit: %+v", first, second)
	}
	// The last task has the array's id.
	if d := r.decide(task(203, 2)); d.ModelVersion != second.ModelVersion {
		t.Errorf("the last task: %+v", d)
	}
}

func TestTasksOfAnArrayAreFoundAsSqueueShowsThem(t *testing.T) {
	r := taught(t)
	r.job(201, func(j *slurm.Job) { j.ArrayJob, j.ArrayTask = 203, 0 })
	r.job(203, func(j *slurm.Job) { j.ArrayJob, j.ArrayTask, j.ArrayTasks = 203, -1, "2-9%2" })
	r.job(204, func(*slurm.Job) {})
	for text, want := range map[string]slurm.JobID{
		"203_0": 201, "203_2": 203, "203_9": 203, "204": 204,
		"201": 201,
	} {
		if id, err := r.Jobs.Number(t.Context(), text); err != nil || id != want {
			t.Errorf("%s is %d, %v, want %d", text, id, err, want)
		}
	}
	for text, want := range map[string]error{
		"203_1": store.ErrNotFound, "204_0": store.ErrNotFound, "203_[2-9]": ErrRequest,
		"203_0.batch": ErrRequest, "203+1": ErrRequest, "x": ErrRequest, "203_": ErrRequest,
	} {
		if _, err := r.Jobs.Number(t.Context(), text); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
	for id, want := range map[slurm.JobID]string{201: "203_0", 203: "203_[2-9%2]", 204: ""} {
		view, err := r.Queries.Job(context.Background(), query.ForEPD(), id)
		if err != nil || view.Job.ArrayID != want {
			t.Errorf("job %d: %+v, %v, want array id %q", id, view, err, want)
		}
	}
}

func TestATaskOfAnArrayIsKnownOnceSlurmForgotIt(t *testing.T) {
	r := taught(t)
	r.job(100, func(j *slurm.Job) { j.ArrayJob, j.ArrayTask = 98, 3 })
	d := r.decide(onNode("n1"))
	r.record(r.ran(d, onNode(d.Node).RunID, memoryBound()), 0)
	r.sync(fixedSlurm{}) // Slurm lists it no more
	task := &store.JobFilter{Cluster: "alpha", ArrayJob: 98, ArrayTask: 3}
	page, err := r.store.JobRows(t.Context(), task, 0, 9)
	if err != nil || len(page.Jobs) != 1 || page.Jobs[0].ID != 100 || page.Jobs[0].ArrayID() != "98_3" {
		t.Fatalf("%+v, %v", page.Jobs, err)
	}
	later := page.Jobs[0].Job // ids come again: the last submission counts
	later.ID, later.Submitted = 700, later.Submitted.Add(time.Hour)
	if err := r.store.PutJob(t.Context(), &later); err != nil {
		t.Fatal(err)
	}
	if id, err := r.Jobs.Number(t.Context(), "98_3"); err != nil || id != 700 {
		t.Errorf("98_3 is %d, %v", id, err)
	}
	later.ArrayJob, later.ArrayTask, later.State = 0, 0, "COMPLETED" // said by who doesn't know of the array
	if err := r.store.PutJob(t.Context(), &later); err != nil {
		t.Fatal(err)
	}
	view, err := r.Queries.Job(t.Context(), query.ForEPD(), 700)
	if err != nil || view.Job.ArrayID != "98_3" {
		t.Errorf("%+v, %v", view, err)
	}
	if _, err := r.Jobs.Number(t.Context(), "98_4"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("98_4: %v", err)
	}
}

func TestADecisionIsForgottenWithItsRun(t *testing.T) {
	r := taught(t)
	r.spread(100)
	one, two := r.decide(onNode("n1")), r.decide(onNode("n2"))
	for _, d := range []live.Decision{one, two} {
		r.record(r.ran(d, onNode(d.Node).RunID, memoryBound()), 0)
	}
	if n := r.status().Decided; n != 0 {
		t.Errorf("%d decisions are kept", n)
	}
	all, err := r.store.DecisionsOfJob(context.Background(), "alpha", 100)
	if err != nil || len(all) != 2 || all[0].Setting != all[1].Setting || all[0].Arm != live.ArmTreated ||
		all[1].Arm != live.ArmTreated {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestAJobThatRanHereBeforeIsAskedForAnew(t *testing.T) {
	r, s := newSlurmRig(t, false)
	r.begin(s, 7)
	before := s.asked
	s.change(7, func(j *slurm.Job) {
		j.Restarts, j.Comment, j.Submit, j.Start = 1, "epplan:off", r.clock.read(), r.clock.read()
	})
	request := ask(7)
	request.RunID = "second"
	if d := r.decide(request); !d.Wish.OptOut || s.asked != before+1 {
		t.Errorf("asked %d times: %+v", s.asked-before, d)
	}
}

func TestMeasurementsSeeEachDecisionAndWhatWasWrong(t *testing.T) {
	var seen []Observed
	s := &ctld{}
	r := newRig(t, func(o *Options) {
		o.Resolve = s.resolve
		o.OnDecide = func(d Observed) { seen = append(seen, d) }
	})
	s.set(r.job(1, nil))
	r.decide(ask(1))
	r.decide(ask(1))
	_, _ = r.Decide(context.Background(), &epdapi.DecideRequest{})
	r.decide(ask(2)) // nobody knows it
	s.fail(slurm.ErrUnreachable)
	s.set(r.job(3, nil))
	r.clock.move(time.Hour)
	r.decide(ask(3))
	want := []Observed{
		{Mode: live.Enforce, Arm: live.ArmExcluded},
		{Mode: live.Enforce, Arm: live.ArmExcluded, Again: true},
		{Fault: decide.FaultRequest},
		{Mode: live.Enforce, Arm: live.ArmExcluded, Fault: decide.FaultUnknown},
		{Mode: live.Enforce, Arm: live.ArmExcluded, Fault: decide.FaultSlurm},
	}
	if len(seen) != len(want) {
		t.Fatalf("%+v", seen)
	}
	for i, got := range seen {
		if got.Took <= 0 {
			t.Errorf("decision %d took %s", i, got.Took)
		}
		if got.Took = 0; got != want[i] {
			t.Errorf("decision %d: %+v, want %+v", i, got, want[i])
		}
	}
}
