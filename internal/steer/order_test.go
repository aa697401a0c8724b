package steer_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/steer"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

func TestAJobWithADeadlineGoesBeforeOthersOfItsUserAlone(t *testing.T) {
	w := newWorld()
	// As under priority/basic: one point less for each submission.
	w.job(1, 10, 1000, "")
	w.job(2, 20, 999, "")
	w.job(3, 10, 998, deadline(5*time.Hour))
	w.job(4, 10, 997, deadline(2*time.Hour))
	w.job(5, 10, 996, "")
	w.job(6, 20, 995, "")
	s := w.open(t)
	if r := step(t, s); r != (steer.StepReport{Set: 3}) {
		t.Errorf("%+v", r)
	}
	if got := w.queue(); !slices.Equal(got, []slurm.JobID{2, 4, 3, 1, 5, 6}) {
		t.Errorf("order %v", got)
	}
	if w.jobs[2].Nice+w.jobs[4].Nice+w.jobs[6].Nice != 0 {
		t.Errorf("nices %v", w.nices())
	}
	if st := s.Status(); st.Nice != 3 || st.Set != 3 || st.Trouble != "" {
		t.Errorf("%+v", st)
	}
	w.jobs[4].State.Base = slurm.Running
	w.jobs[3].State.Base = slurm.Running
	if r := step(t, s); r.Undone != 2 || r.Waiting != 1 || w.jobs[1].Nice+w.jobs[5].Nice != 0 {
		t.Errorf("once the deadlines need nothing: %+v, nices %v", r, w.nices())
	}
}

func TestJobsOfOthersWaitOnlyWhereThePartitionAllowsIt(t *testing.T) {
	w := newWorld()
	w.settings.Live.Reorders = map[string]config.Reorder{"gpu": config.ReorderAll, "off": config.ReorderOff}
	w.job(1, 10, 1000, "")
	w.job(2, 20, 990, deadline(time.Hour))
	for id := slurm.JobID(3); id < 7; id++ {
		w.job(id, 10, 1000, map[bool]string{true: deadline(time.Hour)}[id == 6]).Partition = "off"
		w.setNice(id, int64(id))
	}
	s := w.open(t)
	step(t, s)
	if w.jobs[1].Nice != 11 || w.jobs[2].Nice != 0 {
		t.Errorf("nices %v", w.nices())
	}
	for id := slurm.JobID(3); id < 7; id++ {
		if w.jobs[id].Nice != int64(id) {
			t.Errorf("job %s of partition off: nice %d", id, w.jobs[id].Nice)
		}
	}
}

func TestWhatMustNotBeTouchedIsnt(t *testing.T) {
	w := newWorld()
	w.job(9, 10, 500, deadline(time.Hour))
	w.job(1, 10, 1000, "epplan:off")
	w.job(2, 10, 0, "")                                                     // held
	w.job(3, 10, 1000, "").HetJob = 3                                       // heterogeneous
	w.job(4, 10, 1000, "").Partition = "gpu,other"                          // two priorities
	w.job(5, 10, 1000, "").Eligible = start.Add(time.Hour)                  // --begin
	w.job(6, 10, 1000, "").Reason = "Dependency"                            // waits for another
	w.job(7, 10, 1000, "").State.Base = slurm.Running                       // started
	w.job(8, 10, 1000, "").Reason = "JobHeldUser"                           // held, whatever its priority
	w.job(11, 10, 1000, "").ArrayTasks = "1,3,5,..."                        // cut by Slurm
	w.job(12, 20, 900, "epplan:off epplan:deadline=+1h")                    // gains nothing
	w.job(13, 20, 1000, "")                                                 //
	w.job(14, 30, 1000, "")                                                 //
	w.job(15, 30, 900, deadline(-30*time.Minute))                           // over: gains nothing
	w.job(16, 40, 1000, "")                                                 //
	w.job(17, 40, 900, deadline(time.Hour)).Eligible = start.Add(time.Hour) // can't use it yet
	s := w.open(t)
	if r := step(t, s); r != (steer.StepReport{}) {
		t.Errorf("%+v, nices %v", r, w.nices())
	}
}

func TestInAdviseModeItIsSaidOnly(t *testing.T) {
	w := newWorld()
	w.settings.Live.Mode = live.Advise
	w.settings.Margin = 0.1
	w.settings.Upper = func(j *slurm.Job) (time.Duration, bool) { return time.Hour, j.ID == 2 }
	w.job(1, 10, 1000, "")
	w.job(2, 10, 990, deadline(time.Hour)).TimeLimit = live.LimitOf(24 * time.Hour)
	s := w.open(t)
	if r := step(t, s); r != (steer.StepReport{}) || w.jobs[1].Nice != 0 {
		t.Errorf("%+v, nices %v", r, w.nices())
	}
	st := s.Status()
	if len(st.Advice) != 2 || st.Advice[0].Kind != steer.KindOrder || st.Advice[0].Job != 1 ||
		st.Advice[0].UID != 10 ||
		!strings.HasPrefix(st.Advice[0].Text, "nice 11 instead of 0: job 2 has a deadline at ") {
		t.Errorf("%+v", st.Advice)
	}
	if a := st.Advice[len(st.Advice)-1]; a.Kind != steer.KindLimit || a.Job != 2 ||
		!strings.Contains(a.Text, "--time=0-01:06:00") {
		t.Errorf("%+v", a)
	}
	w.settings.Live.Mode = live.Observe
	step(t, s)
	if st := s.Status(); len(st.Advice) != 0 {
		t.Errorf("observed: %+v", st.Advice)
	}
}

func TestOfOtherUsersJobsAnAdviceSaysNothing(t *testing.T) {
	w := newWorld()
	w.settings.Live.Mode, w.settings.Live.Reorder = live.Advise, config.ReorderAll
	w.job(1, 10, 1000, "")
	w.job(2, 20, 990, deadline(time.Hour))
	s := w.open(t)
	step(t, s)
	if st := s.Status(); len(st.Advice) != 1 || strings.Contains(st.Advice[0].Text, "job 2") {
		t.Errorf("%+v", st.Advice)
	}
}

func TestNearTheLowestPriorityNobodyIsPushedBelowIt(t *testing.T) {
	w := newWorld()
	w.job(1, 10, 2, "")
	w.job(2, 10, 2, deadline(2*time.Hour))
	w.job(3, 10, 2, deadline(time.Hour))
	s := w.open(t)
	step(t, s)
	if w.jobs[2].Nice > 1 || w.jobs[1].Nice > 1 {
		t.Errorf("nices %v", w.nices())
	}
	if st := s.Status(); len(st.Notes) != 1 || !strings.Contains(st.Notes[0], "too near 1") {
		t.Errorf("notes %q", st.Notes)
	}
}

func TestAJobThatIsTooFarAheadStaysThere(t *testing.T) {
	w := newWorld()
	w.job(1, 10, 5_000_000, "")
	w.job(2, 10, 1000, deadline(time.Hour))
	w.job(3, 10, 1500, "")
	s := w.open(t)
	step(t, s)
	if w.jobs[1].Nice != 0 || w.jobs[3].Nice == 0 {
		t.Errorf("nices %v", w.nices())
	}
	if st := s.Status(); len(st.Notes) != 1 ||
		!strings.Contains(st.Notes[0], "job 1 would have to be lowered by") {
		t.Errorf("notes %q", st.Notes)
	}
}

func TestWhileOrderIsBeingMadeNothingUrgentFallsBehind(t *testing.T) {
	w := newWorld()
	w.job(1, 10, 95, deadline(2*time.Hour))
	w.job(2, 10, 93, "")
	w.job(3, 10, 92, "")
	w.job(4, 10, 90, deadline(time.Hour))
	w.job(5, 10, 96, deadline(90*time.Minute))
	s := w.steerer(t, 1)
	for step(t, s).Set > 0 {
		if got := w.queue(1, 2, 3, 5); got[0] != 5 || got[1] != 1 {
			t.Errorf("order %v", w.queue())
		}
	}
	if got := w.queue(); !slices.Equal(got, []slurm.JobID{4, 5, 1, 2, 3}) {
		t.Errorf("order %v", got)
	}
}

func TestAJobThatIsLeftAloneMovesNoOthers(t *testing.T) {
	w := newWorld()
	w.job(1, 10, 95, deadline(2*time.Hour))
	w.job(2, 10, 99, "")
	w.job(3, 10, 90, deadline(time.Hour))
	s := w.open(t)
	step(t, s)
	w.setNice(1, 0) // its user
	delete(w.jobs, 3)
	if r := step(t, s); r != (steer.StepReport{Undone: 1}) || w.jobs[2].Nice != 0 {
		t.Errorf("%+v, nices %v", r, w.nices())
	}
}

func TestASmallDriftOfPrioritiesMovesNothing(t *testing.T) {
	w := newWorld()
	w.job(1, 10, 1000, "")
	w.job(2, 10, 900, deadline(time.Hour))
	s := w.open(t)
	step(t, s)
	for drift, want := range map[int64]int64{0: 101, 5: 101, 8: 101, 20: 81} {
		w.base[1] = 1000 - drift
		w.setNice(1, 101)
		r := step(t, s)
		if w.jobs[1].Nice != want || (want == 101) != (r == steer.StepReport{}) {
			t.Errorf("drift %d: nice %d, want %d", drift, w.jobs[1].Nice, want)
		}
		w.base[1] = 1000
		w.setNice(1, w.jobs[1].Nice)
		step(t, s)
	}
}

func TestAPartitionThatIsOnlyObservedIsNotAskedAbout(t *testing.T) {
	w := newWorld()
	w.settings.Live.Mode = live.Observe
	s := w.open(t)
	asked := w.now
	if step(t, s); !w.now.Equal(asked) {
		t.Error("Slurm was asked")
	}
	w.settings.Live.Modes = map[string]live.Mode{"gpu": live.Advise}
	if step(t, s); w.now.Equal(asked) {
		t.Error("Slurm was not asked")
	}
}

func BenchmarkWantedOf100000Jobs(b *testing.B) {
	w := newWorld()
	w.settings.Live.Reorder = config.ReorderAll
	for id := range slurm.JobID(100_000) {
		w.job(id+1, uint32(id%200), 2_000_000-int64(id),
			map[bool]string{true: deadline(time.Hour)}[id%100 == 99])
	}
	snap, err := w.snapshot(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if p := steer.NewPlan(snap, &w.settings, &steer.OwnChanges{}); len(p.Wants) == 0 {
			b.Fatal("nothing is wanted")
		}
	}
}

// drawWorld returns a queue of any kind.
func drawWorld(t *rapid.T) *world {
	w := newWorld()
	rules := &w.settings.Live
	rules.Modes = map[string]live.Mode{"advise": live.Advise, "observe": live.Observe}
	rules.Reorders = map[string]config.Reorder{"all": config.ReorderAll, "off": config.ReorderOff}
	for id := range slurm.JobID(rapid.Uint32Range(0, 14).Draw(t, "jobs")) {
		comment := rapid.SampledFrom([]string{
			"", "", "", "epplan:off", deadline(time.Hour), deadline(2 * time.Hour),
			deadline(-30 * time.Minute), "x",
		}).Draw(t, "comment")
		j := w.job(id+1, rapid.Uint32Range(10, 12).Draw(t, "uid"),
			rapid.Int64Range(100, 140).Draw(t, "base"), comment)
		j.Partition = rapid.SampledFrom([]string{
			"gpu", "gpu", "gpu", "all", "all", "off", "advise", "observe", "gpu,all",
		}).Draw(t, "partition")
		if rapid.IntRange(0, 9).Draw(t, "held") == 0 {
			w.base[j.ID] = 0
		}
		w.setNice(j.ID, rapid.Int64Range(-10, 10).Draw(t, "nice"))
		if rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
			j.State.Base = slurm.Running
		}
	}
	return w
}

// mayChange reports whether a job's nice may have changed.
func mayChange(w *world, j *slurm.Job) bool {
	return (j.Partition == "gpu" || j.Partition == "all") && j.State.Base == slurm.Pending &&
		w.base[j.ID] > 0 && j.Comment != "epplan:off"
}

func TestOnlyJobsThatMayAreMovedAndThenDeadlinesComeInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		before := w.nices()
		s := w.open(t)
		for range 2 { // jobs start between steps
			checkSteps(t, w, s, before)
			for _, id := range slices.Sorted(maps.Keys(w.jobs)) {
				if rapid.IntRange(0, 5).Draw(t, "starts") == 0 {
					w.jobs[id].State.Base = slurm.Running
				}
			}
		}
		if r, err := s.UndoAll(t.Context()); err != nil || r.Failed > 0 {
			t.Fatal(r, err)
		}
		for _, j := range w.jobs { // those that ran are requeued: then it's taken back, too
			j.State.Base = slurm.Pending
		}
		if r, err := s.Step(t.Context()); err != nil || r.Set > 0 || r.Waiting > 0 {
			t.Fatal(r, err)
		}
		if !maps.Equal(w.nices(), before) {
			t.Fatalf("nices %v, before %v", w.nices(), before)
		}
	})
}

// checkSteps: a step brings about what is wanted, a second one does nothing.
func checkSteps(t *rapid.T, w *world, s *steer.Steerer, before map[slurm.JobID]int64) {
	t.Helper()
	if r, err := s.Step(t.Context()); err != nil || r.Failed > 0 || r.More > 0 {
		t.Fatal(r, err)
	}
	checkMoved(t, w, before)
	checkOrder(t, w, before)
	if r, err := s.Step(t.Context()); err != nil || r.Set+r.Undone > 0 {
		t.Fatalf("a second step does something: %+v, %v", r, err)
	}
}

// checkMoved: only what may be moved was, and nothing is more urgent than its
// user left it.
func checkMoved(t *rapid.T, w *world, before map[slurm.JobID]int64) {
	t.Helper()
	for id, j := range w.jobs {
		if j.Nice < before[id] {
			t.Fatalf("job %s is more urgent than its user left it: %d, %d", id, j.Nice, before[id])
		}
		if !mayChange(w, j) && j.Nice != before[id] && j.State.Base == slurm.Pending {
			t.Fatalf("job %+v was moved", j)
		}
	}
}

// dueOf returns when a job must be done; far away without a deadline to come.
func dueOf(w *world, id slurm.JobID) time.Time {
	if d := slurm.ParseWishes(w.jobs[id].Comment, start.Add(-time.Hour)).Deadline; d.After(w.now) {
		return d
	}
	return never
}

var never = start.Add(1000 * time.Hour)

// checkOrder: in each group deadlines come in order, and nothing is moved
// without one.
func checkOrder(t *rapid.T, w *world, before map[slurm.JobID]int64) {
	t.Helper()
	groups := make(map[string][]slurm.JobID)
	for id, j := range w.jobs {
		if !mayChange(w, j) {
			continue
		}
		group := j.Partition
		if group == "gpu" {
			group = fmt.Sprint(group, j.UID)
		}
		groups[group] = append(groups[group], id)
	}
	for name, ids := range groups {
		due := make([]time.Time, 0, len(ids))
		moved := false
		for _, id := range w.queue(ids...) {
			due = append(due, dueOf(w, id))
			moved = moved || w.jobs[id].Nice != before[id]
		}
		if !slices.IsSortedFunc(due, time.Time.Compare) {
			t.Fatalf("group %s: order %v, nices %v", name, due, w.nices())
		}
		if moved && due[0].Equal(never) {
			t.Fatalf("group %s has no deadline, yet nices are %v, were %v", name, w.nices(), before)
		}
	}
}
