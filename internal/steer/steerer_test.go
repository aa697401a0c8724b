package steer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/steer"
	"github.com/epplan/epplan/internal/testkit/spooltest"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/lever"
)

// pair returns a world with a job that goes behind another.
func pair() *world {
	w := newWorld()
	w.job(1, 10, 1000, "")
	w.setNice(1, 7)
	w.job(2, 10, 900, deadline(10*time.Hour))
	return w
}

func TestAUserWhoChangesOrUndoesNiceIsLeftAlone(t *testing.T) {
	for _, nice := range []int64{7, 0, 500} {
		w := pair()
		s := w.open(t)
		step(t, s)
		if w.jobs[1].Nice != 101 {
			t.Fatalf("nices %v", w.nices())
		}
		w.setNice(1, nice)
		for range 2 {
			if r := step(t, s); r != (steer.StepReport{}) || w.jobs[1].Nice != nice {
				t.Errorf("nice %d: %+v, nices %v", nice, r, w.nices())
			}
		}
		if st := s.Status(); !slices.Equal(st.Left, []slurm.JobID{1}) || st.Nice != 0 {
			t.Errorf("%+v", st)
		}
		s = w.open(t) // and after a restart
		if r := step(t, s); r != (steer.StepReport{}) {
			t.Errorf("nice %d: %+v", nice, r)
		}
		if _, err := s.UndoAll(t.Context()); err != nil || w.jobs[1].Nice != nice {
			t.Errorf("nice %d: %v, nices %v", nice, err, w.nices())
		}
		delete(w.jobs, 1)
		step(t, s)
		if st := s.Status(); len(st.Left) != 0 {
			t.Errorf("remembered after its end: %+v", st)
		}
	}
}

// A slurmctld that is killed comes back with what it had written down some seconds before.
func TestChangesThatSlurmLostAreMadeAgain(t *testing.T) {
	for name, lost := range map[string]int64{"all": 7, "the last one": 101} {
		w := pair()
		s := w.open(t)
		step(t, s)
		w.base[2] = 800 // job 1 goes further back
		w.rank(w.jobs[2])
		step(t, s)
		if w.jobs[1].Nice != 201 {
			t.Fatalf("nices %v", w.nices())
		}
		w.now = w.now.Add(900 * time.Millisecond)
		w.booted = w.now.Truncate(time.Second)
		w.setNice(1, lost)
		for range 2 {
			step(t, s)
		}
		if st := s.Status(); w.jobs[1].Nice != 201 || len(st.Left) > 0 || st.Nice != 1 {
			t.Errorf("%s: nices %v, %+v", name, w.nices(), st)
		}
		w.setNice(1, lost)
		if r, err := s.UndoAll(t.Context()); err != nil || r.Waiting+r.Failed > 0 || w.jobs[1].Nice != 7 {
			t.Errorf("%s: %+v, %v, nices %v", name, r, err, w.nices())
		}
	}
}

// What was taken back comes back, too; once it is sure to be written down, a job's nice is its user's.
func TestANiceThatComesBackAfterItWasTakenBackIsTakenBackAgain(t *testing.T) {
	w := pair()
	s := w.open(t)
	step(t, s)
	w.jobs[2].Comment = ""
	step(t, s)
	w.now = w.now.Add(time.Minute)
	w.booted = w.now
	w.setNice(1, 101)
	s = w.open(t)
	for range 2 {
		step(t, s)
	}
	if st := s.Status(); w.jobs[1].Nice != 7 || len(st.Left) > 0 || st.Nice > 0 {
		t.Errorf("nices %v, %+v", w.nices(), st)
	}
	w.now = w.now.Add(10 * time.Minute)
	step(t, s)
	w.setNice(1, 101)
	if r := step(t, s); r != (steer.StepReport{}) || w.jobs[1].Nice != 101 {
		t.Errorf("%+v, nices %v", r, w.nices())
	}
}

// A slurmctld that hangs takes a change after epd has given up waiting for it.
func TestAChangeThatComesLateIsKnownAsOurs(t *testing.T) {
	w := pair()
	s := w.open(t)
	hangs := func(lever.Undo) error { return slurm.ErrUnreachable }
	w.fail = hangs
	if _, err := s.Step(t.Context()); !errors.Is(err, slurm.ErrUnreachable) {
		t.Fatal(err)
	}
	if _, err := s.Step(t.Context()); !errors.Is(err, slurm.ErrUnreachable) { // not made yet, and tried again
		t.Fatal(err)
	}
	w.fail = nil
	w.jobs[2].Comment = ""
	step(t, s)        // it isn't wanted any more
	w.setNice(1, 101) // now
	for range 2 {
		step(t, s)
	}
	if st := s.Status(); w.jobs[1].Nice != 7 || len(st.Left) > 0 {
		t.Errorf("nices %v, %+v", w.nices(), st)
	}

	w = pair()
	s = w.open(t)
	step(t, s)
	w.base[2], w.fail = 800, hangs
	w.rank(w.jobs[2])
	if _, err := s.Step(t.Context()); !errors.Is(err, slurm.ErrUnreachable) {
		t.Fatal(err)
	}
	w.fail = nil
	w.base[2] = 900
	w.rank(w.jobs[2])
	step(t, s)
	w.setNice(1, 201) // late
	for range 2 {
		step(t, s)
	}
	if st := s.Status(); w.jobs[1].Nice != 101 || len(st.Left) > 0 {
		t.Errorf("nices %v, %+v", w.nices(), st)
	}
}

func TestAJobThatIsHeldMeanwhileIsNeitherReleasedNorForgotten(t *testing.T) {
	w := pair()
	s := w.open(t)
	step(t, s)
	w.base[1] = 0
	w.setNice(1, w.jobs[1].Nice)
	delete(w.jobs, 2)
	if r := step(t, s); r != (steer.StepReport{Waiting: 1}) || !w.jobs[1].Held() {
		t.Errorf("%+v, %+v", r, w.jobs[1])
	}
	w.base[1] = 1000
	w.setNice(1, w.jobs[1].Nice)
	if r := step(t, s); r != (steer.StepReport{Undone: 1}) || w.jobs[1].Nice != 7 {
		t.Errorf("%+v, %+v", r, w.jobs[1])
	}
}

func TestAJobThatIsRequeuedGetsItsOwnNiceBack(t *testing.T) {
	w := pair()
	s := w.open(t)
	step(t, s)
	w.jobs[1].State.Base = slurm.Running
	if r, err := s.UndoAll(t.Context()); err != nil || r != (steer.StepReport{Waiting: 1, Running: 1}) {
		t.Errorf("%+v, %v", r, err)
	}
	w.jobs[1].State.Base = slurm.Pending
	if r := step(t, s); r != (steer.StepReport{Undone: 1}) || w.jobs[1].Nice != 7 {
		t.Errorf("%+v, nices %v", r, w.nices())
	}
}

func TestTheNiceOfAJobWhoseRecordCantBeReadIsntForgotten(t *testing.T) {
	for _, odd := range []slurm.Unread{{Records: 1, Names: []string{"1"}}, {Records: 1}} {
		w := pair()
		s := w.open(t)
		step(t, s)
		w.odd = odd
		step(t, s)
		w.odd = slurm.Unread{}
		if _, err := s.UndoAll(t.Context()); err != nil || w.jobs[1].Nice != 7 {
			t.Errorf("%+v: %v, nices %v, want its own 7", odd, err, w.nices())
		}
	}
}

func TestTasksOfAnArrayKeepBeingOursWhenTheyStartAndComeBack(t *testing.T) {
	w := pair()
	w.jobs[1].ArrayJob, w.jobs[1].ArrayTasks = 1, "0-9"
	s := w.open(t)
	step(t, s)
	task := func(id slurm.JobID, nice int64) {
		j := *w.jobs[1]
		j.Nice, j.ID, j.ArrayTask, j.ArrayTasks, j.State.Base = nice, id, int(id), "", slurm.Running
		w.jobs[id], w.base[id] = &j, w.base[1]
	}
	task(5, 101) // starts with the offset
	step(t, s)
	w.jobs[2].Comment = ""
	if r := step(t, s); r.Undone != 1 || w.jobs[1].Nice != 7 {
		t.Errorf("%+v, nices %v", r, w.nices())
	}
	task(6, 101) // started just before
	task(7, 7)   // starts with the user's own
	s = w.open(t)
	step(t, s)
	for id := slurm.JobID(5); id <= 7; id++ {
		w.jobs[id].State.Base = slurm.Pending
	}
	step(t, s)
	for id := slurm.JobID(5); id <= 7; id++ {
		if w.jobs[id].Nice != 7 {
			t.Errorf("nices %v", w.nices())
		}
	}
	w.jobs = map[slurm.JobID]*slurm.Job{}
	step(t, s)
	if st := s.Status(); st.Nice != 0 {
		t.Errorf("%+v", st)
	}
}

func TestWhatFailsForOneJobDoesNotStopOthers(t *testing.T) {
	w := pair()
	w.job(3, 10, 1200, "")
	refused := errors.New("access denied")
	w.fail = func(u lever.Undo) error {
		if u.Job == 3 {
			return refused
		}
		return nil
	}
	s := w.open(t)
	if r := step(t, s); r.Set != 1 || r.Failed != 1 || w.jobs[1].Nice == 7 {
		t.Errorf("%+v, nices %v", r, w.nices())
	}
	for range 5 {
		step(t, s)
	}
	if st := s.Status(); st.Failed != 3 || len(st.Notes) != 1 ||
		!strings.Contains(st.Notes[0], "nice of job 3 can't be moved") {
		t.Errorf("%+v", st)
	}
	if r, err := s.UndoAll(t.Context()); err != nil || r.Undone != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestWhenSlurmDoesNotAnswerTheStepEnds(t *testing.T) {
	w := pair()
	w.job(3, 10, 1200, "")
	w.fail = func(lever.Undo) error { return slurm.ErrUnreachable }
	s := w.open(t)
	if r, err := s.Step(t.Context()); !errors.Is(err, slurm.ErrUnreachable) || r.More != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	if st := s.Status(); st.Trouble == "" || st.Failed != 0 {
		t.Errorf("%+v", st)
	}
	w.fail = nil
	if r := step(t, s); r.Set != 2 {
		t.Errorf("%+v", r)
	}
}

func TestAStepMakesAtMostSoManyChanges(t *testing.T) {
	w := newWorld()
	w.job(100, 10, 100, deadline(time.Hour))
	for id := range slurm.JobID(10) {
		w.job(id+1, 10, 1000-10*int64(id), "")
	}
	s := w.steerer(t, 4)
	for _, want := range []steer.StepReport{{Set: 4, More: 6}, {Set: 4, More: 2}, {Set: 2}, {}} {
		if r := step(t, s); r != want {
			t.Errorf("%+v, want %+v", r, want)
		}
	}
	if first := w.queue()[0]; first != 100 {
		t.Errorf("job %s is first", first)
	}
	if r, err := s.UndoAll(t.Context()); err != nil || r.Undone != 10 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestAfterEverythingWasTakenBackNothingIsSetUntilItMayBe(t *testing.T) {
	w := pair()
	s := w.open(t)
	step(t, s)
	if r, err := s.UndoAll(t.Context()); err != nil || r != (steer.StepReport{Undone: 1}) {
		t.Fatal(r, err)
	}
	if r := step(t, s); r != (steer.StepReport{}) || !s.Status().Paused {
		t.Errorf("%+v", r)
	}
	w.settings.Version = "2"
	if r := step(t, s); r.Set != 1 || s.Status().Paused {
		t.Errorf("%+v", r)
	}
}

func TestAnAnswerFromBeforeTheLastChangeIsNotJudgedBy(t *testing.T) {
	w := pair()
	old, err := w.snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stale := false
	s, err := steer.Open(&steer.Options{
		Source: func(ctx context.Context) (*steer.Snapshot, error) {
			if stale {
				return old, nil
			}
			return w.snapshot(ctx)
		},
		Levers: w, PowerSaving: w.PowerSaving, Settings: func() *steer.Settings { return &w.settings },
		Dir: "levers", Disk: w.disk, Clock: func() time.Time { return w.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	step(t, s)
	stale = true
	if r := step(t, s); r != (steer.StepReport{}) || w.jobs[1].Nice != 101 {
		t.Errorf("%+v, nices %v", r, w.nices())
	}
	if _, err := s.UndoAll(t.Context()); !errors.Is(err, steer.ErrStale) {
		t.Error(err)
	}
	stale = false
	if r := step(t, s); r != (steer.StepReport{Undone: 1}) || len(s.Status().Left) != 0 {
		t.Errorf("%+v, %+v", r, s.Status())
	}
}

func TestALedgerThatCannotBeReadIsMovedAsideAndSaid(t *testing.T) {
	for _, text := range []string{
		"", "{", `{"schema":0,"entries":[]}`, `{"schema":1,"entries":[null]}`, `{"schema":1,"entries":[]} x`,
		`{"schema":1,"entries":[{"lever":"nice","job":1,"before":"x","after":"5","phase":"in_force","at":"2026-03-02T12:00:00Z"}]}`,
		`{"schema":1,"entries":[{"lever":"reboot","node":"n1","before":"1","after":"5","phase":"in_force","at":"2026-03-02T12:00:00Z"}]}`,
		`{"schema":1,"entries":[{"lever":"weight","node":"-x","before":"1","after":"5","phase":"in_force","at":"2026-03-02T12:00:00Z"}]}`,
	} {
		w := pair()
		f, err := w.disk.Create(filepath.Join("levers", "levers.json"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		s := w.open(t)
		if s.Status().Trouble == "" || !slices.Equal(w.disk.Names(),
			[]string{fmt.Sprintf("levers/levers.json.aside-%d", w.now.Unix())}) {
			t.Errorf("%q: %+v, files %q", text, s.Status(), w.disk.Names())
		}
		if r := step(t, s); r.Set != 1 || s.Status().Trouble != "" {
			t.Errorf("%q: %+v", text, r)
		}
	}
}

// Who goes back to this epd finds what the newer one set named still when that one is back, and sets nothing
// over it meanwhile.
func TestALedgerOfANewerEPDStaysAndNothingIsSet(t *testing.T) {
	w := pair()
	path, text := filepath.Join("levers", "levers.json"), `{"schema":2,"entries":{"job":7}}`
	write := func(text string) {
		f, err := w.disk.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	write(text)
	s := w.open(t)
	for range 2 {
		if trouble := s.Status().Trouble; !strings.Contains(trouble, "written by a newer epd: schema 2, want 1") ||
			!strings.Contains(trouble, path) {
			t.Errorf("trouble %q", trouble)
		}
		if r, err := s.Step(t.Context()); err == nil || r.Set != 0 || w.jobs[1].Nice != 7 {
			t.Errorf("%+v, %v, nices %v", r, err, w.nices())
		}
	}
	if got, err := w.disk.Read(path); err != nil || string(got) != text || len(w.disk.Names()) != 1 {
		t.Errorf("%q, %v, files %q", got, err, w.disk.Names())
	}
	if err := w.disk.Remove(path); err != nil {
		t.Fatal(err)
	}
	write(`{"colour":3,"schema":1,"entries":[]}`)
	if s := w.open(t); s.Status().Trouble != "" || step(t, s).Set != 1 {
		t.Errorf("%+v", s.Status())
	}
}

func TestTwoLedgersThatAreMovedAsideInTheSameSecondAreBothKept(t *testing.T) {
	w := pair()
	moved := fmt.Sprintf("levers/levers.json.aside-%d", w.now.Unix())
	for _, text := range []string{"first", "second"} {
		f, err := w.disk.Create(filepath.Join("levers", "levers.json"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		w.open(t)
	}
	for name, want := range map[string]string{moved: "first", moved + "-1": "second"} {
		if text, err := w.disk.Read(name); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v; there are %q", name, text, err, w.disk.Names())
		}
	}
}

func TestWithAFullDiskNothingIsSetButEverythingIsTakenBack(t *testing.T) {
	w := pair()
	s := w.open(t)
	step(t, s)
	w.disk.Fill(10)
	w.job(3, 10, 1200, "")
	if r, err := s.Step(t.Context()); err == nil || r.Set != 0 || w.jobs[3].Nice != 0 ||
		s.Status().Trouble == "" {
		t.Errorf("%+v, %v, nices %v", r, err, w.nices())
	}
	if r, err := s.UndoAll(t.Context()); err == nil || r.Undone != 1 || w.jobs[1].Nice != 7 {
		t.Errorf("%+v, %v, nices %v", r, err, w.nices())
	}
}

func TestRunStepsUntilItsEndAndSaysTheSameTroubleOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		asked := 0
		s, err := steer.Open(&steer.Options{
			Source: func(context.Context) (*steer.Snapshot, error) {
				if asked++; asked%5 == 0 {
					return &steer.Snapshot{At: time.Now()}, nil
				}
				return nil, slurm.ErrUnreachable
			},
			Levers: newWorld(), PowerSaving: newWorld().PowerSaving,
			Settings: func() *steer.Settings { return &steer.Settings{} },
			Dir:      "levers", Disk: spooltest.New(), Log: slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 95*time.Second)
		defer cancel()
		s.Run(ctx, 10*time.Second)
		if n := strings.Count(log.String(), "slurm does not answer"); asked != 10 || n != 2 {
			t.Errorf("asked %d times, said %d times:\n%s", asked, n, log.String())
		}
	})
}

// TestStepsAreMoreOftenWhereAnOrderIsInForce: but Slurm is left alone for four times as long as it took.
func TestStepsAreMoreOftenWhereAnOrderIsInForce(t *testing.T) {
	for _, c := range []struct {
		ranking *steer.Ranking
		every   float64 // of the plan, seconds
		takes   time.Duration
		want    int // steps in a minute
	}{
		{nil, 60, 0, 3},
		{&steer.Ranking{}, 60, 0, 30},
		{&steer.Ranking{}, 1, 0, 60},
		{&steer.Ranking{}, 60, time.Second, 12},
		{&steer.Ranking{}, 60, 10 * time.Second, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			settings := &steer.Settings{Ranking: c.ranking}
			settings.Live.Plan.Mode, settings.Live.Plan.Every = config.PlanEnforce, c.every
			asked := 0
			s, err := steer.Open(&steer.Options{
				Source: func(context.Context) (*steer.Snapshot, error) {
					asked++
					<-time.After(c.takes)
					return &steer.Snapshot{At: time.Now()}, nil
				},
				Levers: newWorld(), PowerSaving: newWorld().PowerSaving,
				Settings: func() *steer.Settings { return settings }, Dir: "levers", Disk: spooltest.New(),
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute-time.Millisecond)
			defer cancel()
			s.Run(ctx, 20*time.Second)
			if asked != c.want {
				t.Errorf("%+v: %d steps", c, asked)
			}
		})
	}
}

func TestTheLedgerIsKeptOnTheRealDiskToo(t *testing.T) {
	w := pair()
	dir := filepath.Join(t.TempDir(), "levers")
	open := func() *steer.Steerer {
		s, err := steer.Open(&steer.Options{
			Source: w.snapshot, Levers: w, PowerSaving: w.PowerSaving,
			Settings: func() *steer.Settings { return &w.settings }, Dir: dir,
		})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	w.now = time.Now().Add(time.Hour)
	for _, j := range w.jobs {
		j.Eligible = w.now
	}
	w.jobs[2].Comment = "epplan:deadline=" + w.now.Add(time.Hour).Format(time.RFC3339)
	s := open()
	if r := step(t, s); r.Set != 1 {
		t.Fatal(r)
	}
	before := w.nices()
	s = open()
	if r := step(t, s); r != (steer.StepReport{}) || !maps.Equal(w.nices(), before) {
		t.Errorf("%+v, nices %v", r, w.nices())
	}
	if r, err := s.UndoAll(t.Context()); err != nil || r.Undone != 1 || w.jobs[1].Nice != 7 {
		t.Errorf("%+v, %v, nices %v", r, err, w.nices())
	}
}
