package slurmqueue_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/slurmqueue"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/planner"
)

// usual are the terms of the default configuration.
func usual() *slurmqueue.Terms {
	c := config.Default()
	return &slurmqueue.Terms{Profiles: config.BuiltinProfiles(), Objective: c.Objective(), Safety: c.Safety}
}

// crowd is a queue of so many jobs, the oldest first, with limits of an hour and
// more, of which every third has a deadline.
func crowd(jobs int) *epdapi.Queue {
	q := &epdapi.Queue{Nodes: v100s(4), Jobs: []epdapi.QueuedJob{runs(999, 2, 500)}}
	for i := range jobs {
		j := waits(int64(i+1), 1+i%4, 3600+60*float64(i), 100*float64(jobs-i))
		if i%3 == 0 {
			j.DeadlineS = record.Known(7200)
		}
		q.Jobs = append(q.Jobs, j)
	}
	return q
}

func TestAPlanOfTheQueueIsOfWhatWaits(t *testing.T) {
	for _, text := range []string{"", "edl", "baseline", "edl,clocks=default", "lpt-ff"} {
		w, err := slurmqueue.NewWhatIf(t.Context(), crowd(9), usual(), slurmqueue.Question{Policy: text})
		if err != nil {
			t.Fatal(text, err)
		}
		r := w.Result
		if err := planner.Check(r.Problem, r.Plan); err != nil {
			t.Error(text, err)
		}
		if len(r.Problem.Tasks) != 9 || w.Batch.Running.Jobs != 1 || w.Beyond != 0 {
			t.Errorf("%q: %d tasks, %+v", text, len(r.Problem.Tasks), w)
		}
		if r.Easy == nil || r.Constant == nil || r.Constant.Clocks["V100"].Core == 0 {
			t.Errorf("%q: not held against EASY and constant clocks: %+v", text, r.Constant)
		}
		if !(r.Baseline > 0) || !(r.Bound > 0) || r.Bound > r.Plan.Ledger.Total()*(1+1e-9) {
			t.Errorf("%q: %v J, baseline %v, bound %v", text, r.Plan.Ledger.Total(), r.Baseline, r.Bound)
		}
	}
}

// Any user may ask, and may have submitted the arrays, too.
func TestTasksOfArraysThatWereNotAskedForTakeNoMemory(t *testing.T) {
	const arrays, tasks, most = 200, 10_000, 20
	q := &epdapi.Queue{Nodes: v100s(8)}
	for id := range int64(arrays) {
		j := waits(id+1, 1, 100, float64(id))
		j.Tasks, j.Held = tasks, id == arrays-1
		q.Jobs = append(q.Jobs, j)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w, err := slurmqueue.NewWhatIf(t.Context(), q, usual(), slurmqueue.Question{Policy: "baseline", Most: most})
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if want := (arrays-1)*tasks - most; len(w.Jobs) != most || w.Jobs[most-1].ID != "199/20" || w.Beyond != want || q.Jobs[1].Tasks != tasks {
		t.Errorf("%d jobs up to %s, %d beyond, want %d", len(w.Jobs), w.Jobs[most-1].ID, w.Beyond, want)
	}
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 100 {
		t.Errorf("%d MiB were allocated", took)
	}
}

func TestThePlanIsOfThoseThatWaitLongest(t *testing.T) {
	w, err := slurmqueue.NewWhatIf(t.Context(), crowd(9), usual(), slurmqueue.Question{Most: 2})
	if err != nil {
		t.Fatal(err)
	}
	tasks := w.Result.Problem.Tasks
	if len(tasks) != 2 || tasks[0].ID != "1" || tasks[1].ID != "2" || w.Beyond != 7 {
		t.Errorf("%d beyond, tasks %+v", w.Beyond, tasks)
	}
}

func TestDeadlinesCountUnlessTheyAreRelaxed(t *testing.T) {
	for _, relaxed := range []bool{false, true} {
		w, err := slurmqueue.NewWhatIf(t.Context(), crowd(3), usual(), slurmqueue.Question{Relaxed: relaxed})
		if err != nil {
			t.Fatal(err)
		}
		if got := math.IsInf(w.Result.Problem.Tasks[0].Deadline, 1); got != relaxed {
			t.Errorf("relaxed %v: the deadline is %v", relaxed, w.Result.Problem.Tasks[0].Deadline)
		}
	}
}

func TestWhatCannotBePlannedIsSaid(t *testing.T) {
	unknown := crowd(2)
	unknown.Nodes[0].GPUModel = "H999"
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name   string
		ctx    context.Context
		queue  *epdapi.Queue
		policy string
		want   error
		says   string
	}{
		{"a policy that isn't one", t.Context(), crowd(2), "edlx", nil, `unknown policy "edlx"`},
		{"nothing waits", t.Context(), crowd(0), "", slurmqueue.ErrNothingWaits, ""},
		{"no GPU of a known model", t.Context(), unknown, "", slurmqueue.ErrNoNodes, ""},
		{"nobody waits for the answer", over, crowd(50), "", context.Canceled, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := slurmqueue.NewWhatIf(c.ctx, c.queue, usual(), slurmqueue.Question{Policy: c.policy})
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want %v %q", err, c.want, c.says)
			}
		})
	}
}
