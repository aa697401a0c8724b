package control

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// placedJob is a Slurm that has one job, somewhere.
type placedJob struct {
	state atomic.Pointer[string]
	nodes atomic.Pointer[string]
	asked atomic.Int64
}

func (p *placedJob) put(state, nodes string) { p.state.Store(&state); p.nodes.Store(&nodes) }

func (p *placedJob) job(id slurm.JobID) slurm.Job {
	return slurm.Job{
		ID: id, Name: "train", User: "ada", UID: 1000, Partition: "gpu", Submit: start, NodeCount: 1,
		TimeLimit: live.LimitOf(time.Hour), State: slurm.JobState{Base: slurm.State(*p.state.Load())},
		NodeList: *p.nodes.Load(), Allocated: slurm.TRES{"gres/gpu": 1}, Start: start.Add(time.Second),
		End: start.Add(10 * time.Minute),
	}
}

func (p *placedJob) resolve(_ context.Context, id slurm.JobID) (slurm.Job, error) {
	p.asked.Add(1)
	return p.job(id), nil
}

// A job is decided about on the nodes that Slurm has it on, also where what was known of it is of before
// its start.
func TestADecisionIsForANodeThatSlurmHasTheJobOn(t *testing.T) {
	p := &placedJob{}
	p.put("PENDING", "")
	r := newRig(t, func(o *Options) { o.Resolve = p.resolve })
	r.clock.move(time.Second)
	r.Jobs.Observe([]slurm.Job{p.job(1)})
	fixed := ask(1)
	fixed.Comment = "epplan:fixed=802"
	refused := func(node string) bool {
		t.Helper()
		q := *fixed
		q.Node, q.RunID = node, "run-"+node
		d := r.decide(&q)
		return strings.Contains(d.Reason, "Slurm doesn't have the job on this node") && !d.Apply && d.Workload == ""
	}
	if !refused("n1") {
		t.Error("a decision for a job that waits")
	}
	if r.decider.Len() != 0 {
		t.Error("it is kept")
	}
	p.put("RUNNING", "n[2-3]")
	for node, want := range map[string]bool{"n1": true, "n2": false, "n3": false, "n23": true} {
		if got := refused(node); got != want {
			t.Errorf("%s is turned down: %v, want %v", node, got, want)
		}
	}
	before := p.asked.Load()
	for range 3 {
		refused("n2")
	}
	if n := p.asked.Load() - before; n != 0 {
		t.Errorf("Slurm was asked %d times for what is known", n)
	}
	if refused("n2") || r.decider.Len() != 2 {
		t.Errorf("%d decisions are kept, want those of n2 and n3", r.decider.Len())
	}
}

func TestADecisionNeedsARun(t *testing.T) {
	r := newRig(t, nil)
	q := ask(1)
	q.RunID = ""
	if _, err := r.Decide(t.Context(), q); err == nil {
		t.Error("a decision for no run")
	}
}

// Whoever sends an outcome names neither its workload nor a job of other nodes.
func TestForgedOutcomesTeachNothing(t *testing.T) {
	for _, c := range []struct {
		name, state, nodes string
		locked             bool // at clocks that nobody decided
		gone               bool // Slurm doesn't know the job
		unmatched          bool
		workload           bool // that of the job
	}{
		{"of a job elsewhere", "COMPLETED", "n2", false, false, true, false},
		{"of its own job", "COMPLETED", "n1", false, false, false, true},
		{"of its own job at other clocks", "COMPLETED", "n1", true, false, false, false},
		{"of a job on several nodes", "COMPLETED", "n[1-2]", false, false, false, true},
		{"of no job", "COMPLETED", "n1", false, true, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &placedJob{}
			p.put(c.state, c.nodes)
			r := newRig(t, func(o *Options) {
				o.Resolve = func(ctx context.Context, id slurm.JobID) (slurm.Job, error) {
					if c.gone {
						return slurm.Job{}, fmt.Errorf("job %s: %w", id, slurm.ErrNotFound)
					}
					return p.resolve(ctx, id)
				}
			})
			r.clock.move(11 * time.Minute)
			pt := coreBound()
			o := r.ran(live.Decision{
				Job: 1, Node: "n1", Workload: "0123456789abcdef01234567x1",
				GPUModel: "V100-16GB", Arm: live.ArmTreated, Apply: c.locked,
				Setting: dvfsmodel.Setting{Core: 802, Mem: 877},
			}, "run-1", pt)
			o.Started, o.Ended = start.Add(time.Second), start.Add(10*time.Minute)
			o.TimeS = live.Known(599)
			if _, err := r.Record(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			page, err := r.store.OutcomesOfJob(t.Context(), "alpha", 1)
			if err != nil || len(page) != 1 {
				t.Fatalf("%d outcomes, %v", len(page), err)
			}
			got := page[0]
			if got.Unmatched != c.unmatched || (got.Workload != "") != c.workload || got.Workload == o.Workload {
				t.Errorf("unmatched %v, workload %q; want unmatched %v and the job's workload %v", got.Unmatched,
					got.Workload, c.unmatched, c.workload)
			}
			if n := r.status().Elsewhere; (n == 1) != c.unmatched {
				t.Errorf("%d are counted", n)
			}
		})
	}
}

// Of a job on a node one outcome counts, whatever ids of runs its agent makes up: also where each was
// decided.
func TestOfARunOneOutcomeCounts(t *testing.T) {
	for _, decided := range []bool{false, true} {
		t.Run(fmt.Sprintf("decided %v", decided), func(t *testing.T) { oneOutcomeCounts(t, decided) })
	}
}

func oneOutcomeCounts(t *testing.T, decided bool) {
	t.Helper()
	p := &placedJob{}
	p.put("RUNNING", "n1")
	var strange atomic.Int64
	r := newRig(t, func(o *Options) {
		o.Resolve = p.resolve
		o.OnStrange = func(s *ImplausibleReport) {
			if s.Kind != StrangeAgain || s.Node != "n1" {
				t.Errorf("%+v", s)
			}
			strange.Add(1)
		}
	})
	r.clock.move(2 * time.Second)
	const runs = 20
	for i := range runs {
		if q := ask(1); decided {
			q.RunID = fmt.Sprintf("run-%d", i)
			r.decide(q)
		}
	}
	r.clock.move(11 * time.Minute)
	p.put("COMPLETED", "n1")
	var all sync.WaitGroup
	for i := range runs {
		o := r.ran(live.Decision{Job: 1, Node: "n1", Arm: live.ArmTreated}, fmt.Sprintf("run-%d", i),
			coreBound())
		o.Started, o.Ended, o.TimeS = start.Add(time.Second), start.Add(10*time.Minute), live.Known(599)
		all.Go(func() {
			for range 2 { // and once more
				if _, err := r.Record(context.Background(), o); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	page, err := r.store.OutcomesOfJob(t.Context(), "alpha", 1)
	if err != nil || len(page) != runs {
		t.Fatalf("%d outcomes, %v", len(page), err)
	}
	count := 0
	for i := range page {
		if !page[i].Unmatched {
			count++
		}
	}
	if count != 1 || strange.Load() != runs-1 {
		t.Errorf("%d of %d count, %d are told of", count, runs, strange.Load())
	}
}
