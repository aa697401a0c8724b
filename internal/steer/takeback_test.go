package steer_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/steer"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/lever"
)

// restore takes everything back for an epd that has ended, as a process that may be killed, too.
func (w *world) restore(ctx context.Context) (r steer.StepReport, err error) {
	defer w.survive(&err)
	return steer.TakeBack(ctx, &steer.Options{
		Source: w.snapshot, Levers: w, PowerSaving: w.PowerSaving,
		Booted: func(context.Context) (time.Time, error) { return w.booted, nil },
		Dir:    "levers", Disk: w.disk, Clock: func() time.Time { return w.now },
	})
}

// survive turns the end of the process into an error.
func (w *world) survive(err *error) {
	if p := recover(); p != nil {
		died, ok := p.(error)
		if !ok || !errors.Is(died, errCrash) {
			panic(p)
		}
		*err = errCrash
	}
}

// owned is a world that knows what users and administrators set themselves, in which anything may happen
// between two commands of epd's.
type owned struct {
	*world
	rt      *rapid.T
	steerer *steer.Steerer
	nice    map[slurm.JobID]int64 // the user's own
	weight  map[string]uint32     // the site's own
	next    slurm.JobID
}

func drawOwned(rt *rapid.T) *owned {
	w := newWorld()
	w.saving = true
	o := &owned{world: w, rt: rt, nice: map[slurm.JobID]int64{}, weight: map[string]uint32{}}
	w.settings.Live.Weights = rapid.Bool().Draw(rt, "weights")
	w.settings.Live.SleepAfter = float64(60 * rapid.IntRange(0, 1).Draw(rt, "sleep"))
	extents := []config.Reorder{config.ReorderAll, config.ReorderOwn}
	w.settings.Live.Reorder = rapid.SampledFrom(extents).Draw(rt, "reorder")
	for i := range 4 {
		name := "n" + strconv.Itoa(i)
		w.node(name, []string{"a100", "t4"}[i%2], "cpu")
		o.weight[name] = 1
	}
	for range 4 {
		o.submit()
	}
	o.steerer = w.open(rt)
	return o
}

func (o *owned) submit() {
	o.next++
	comment := ""
	if rapid.Bool().Draw(o.rt, "deadline") {
		comment = deadline(time.Duration(1+rapid.IntRange(0, 5).Draw(o.rt, "hours")) * time.Hour)
	}
	j := o.job(o.next, uint32(10*rapid.IntRange(1, 2).Draw(o.rt, "uid")), 2000-int64(o.next), comment)
	o.setNice(j.ID, int64(rapid.IntRange(0, 1).Draw(o.rt, "own")*7))
	o.nice[j.ID] = j.Nice
}

// happen is something that Slurm, a user or an administrator does.
func (o *owned) happen() {
	ids := slices.Sorted(maps.Keys(o.jobs))
	if len(ids) == 0 {
		o.submit()
		return
	}
	id := rapid.SampledFrom(ids).Draw(o.rt, "job")
	j, node := o.jobs[id], o.nodes["n"+strconv.Itoa(rapid.IntRange(0, 3).Draw(o.rt, "node"))]
	switch rapid.IntRange(0, 9).Draw(o.rt, "what") {
	case 0:
		o.submit()
	case 1, 2:
		j.State.Base = slurm.Running
	case 3: // requeued
		j.State.Base = slurm.Pending
	case 4:
		delete(o.jobs, id)
	case 5: // held and released
		if o.base[id] = 2000 - int64(id) - o.base[id]; j.State.Base == slurm.Pending {
			o.rank(j)
		}
	case 6: // no value of ours is as high
		o.setNice(id, int64(500_000+rapid.IntRange(0, 9).Draw(o.rt, "by the user")))
		o.nice[id] = j.Nice
	case 7: // none is what ours is above another of them: the same value can't be told apart
		node.Weight = uint32(5000 + 100*rapid.IntRange(0, 9).Draw(o.rt, "by the administrator"))
		o.weight[node.Name] = node.Weight
	case 8:
		o.settings.Live.Weights = !o.settings.Live.Weights
	case 9:
		o.now = o.now.Add(2 * time.Minute)
	}
	if o.settings.Live.Reorder == config.ReorderAll {
		o.rankAs("value", rapid.Permutation(slices.Sorted(maps.Keys(o.jobs))).Draw(o.rt, "order")...)
	}
}

// fault draws at which of the next commands the process is killed, or Slurm ceases to answer.
func (o *owned) fault(most int) {
	o.calls, o.crash, o.fail = 0, 0, nil
	at := rapid.IntRange(0, most).Draw(o.rt, "fault")
	switch rapid.IntRange(0, 2).Draw(o.rt, "kind") {
	case 0:
		o.crash, o.after = at, rapid.Bool().Draw(o.rt, "after")
	case 1:
		left := at
		o.fail = func(lever.Undo) error {
			if left--; left < 0 {
				return slurm.ErrUnreachable
			}
			return nil
		}
	}
}

// step is one of the running epd's, which may be killed in it. It reports whether epd lives.
func (o *owned) step() bool {
	err := func() (err error) {
		defer o.survive(&err)
		_, err = o.steerer.Step(context.Background())
		return err
	}()
	return !errors.Is(err, errCrash)
}

// check says what isn't as it is without epd.
func (o *owned) check(when string) {
	o.rt.Helper()
	for id, j := range o.jobs {
		if j.State.Base == slurm.Pending && !j.Held() && j.Nice != o.nice[id] {
			o.rt.Fatalf("%s: the nice of job %d is %d, its user's own is %d", when, id, j.Nice, o.nice[id])
		}
	}
	for name, n := range o.nodes {
		if n.Weight != o.weight[name] || n.State.IsPoweredDown() {
			o.rt.Fatalf("%s: node %s has weight %d, the site's is %d; %+v", when, name, n.Weight,
				o.weight[name], n.State)
		}
	}
}

func TestWhateverHappenedAnEPDThatEndedLeavesNothingThatCantBeTakenBack(t *testing.T) {
	var moved, undone int
	rapid.Check(t, func(rt *rapid.T) {
		o := drawOwned(rt)
		var lives bool
		for range rapid.IntRange(1, 6).Draw(rt, "steps") {
			o.fault(6)
			if lives = o.step(); !lives {
				break
			}
			moved += o.calls
			for range rapid.IntRange(0, 3).Draw(rt, "happenings") {
				o.happen()
			}
		}
		// However epd ended, what takes back for it is killed, too, or Slurm is away.
		for range rapid.IntRange(0, 3).Draw(rt, "tries") {
			o.disk = o.disk.Reboot(rapid.Bool().Draw(rt, "power cut"), rand.New(rand.NewPCG(1, 2)))
			o.fault(4)
			_, _ = o.restore(context.Background())
			o.happen()
		}
		o.disk = o.disk.Reboot(false, rand.New(rand.NewPCG(3, 4)))
		o.crash, o.fail = 0, nil
		r, err := o.restore(context.Background())
		if err != nil || r.Failed > 0 || r.More > 0 {
			rt.Fatalf("%+v, %v", r, err)
		}
		undone += r.Undone
		o.check("taken back")
		before := o.calls
		if r, err = o.restore(context.Background()); err != nil || r.Undone > 0 || o.calls != before {
			rt.Fatalf("a second time: %+v, %v, %d commands", r, err, o.calls-before)
		}
		// A job that is held or runs comes back later.
		for id, j := range o.jobs {
			j.State.Base, o.base[id] = slurm.Pending, 2000-int64(id)
			o.rank(j)
		}
		if r, err = o.restore(context.Background()); err != nil || r.Failed+r.More+r.Waiting > 0 {
			rt.Fatalf("once all jobs are pending: %+v, %v", r, err)
		}
		o.check("taken back once all jobs are pending")
	})
	t.Logf("%d changes made, %d taken back", moved, undone)
}

// A Slurm that answers slowly, or a queue of thousands, is left with the rest of the changes known.
func TestWhatIsLeftOfALongQueueIsSaidAndTheNextRunGoesOnWithIt(t *testing.T) {
	w := newWorld()
	w.settings.Live.Reorder = config.ReorderAll
	order := []slurm.JobID{}
	for id := slurm.JobID(1); id <= 300; id++ {
		w.job(id, 10, 5000-int64(id), "")
		order = append([]slurm.JobID{id}, order...)
	}
	w.rankAs("value", order...)
	step(t, w.open(t))
	ours := len(w.nices()) - len(niceless(w))
	if ours < 250 {
		t.Fatalf("%d jobs have a nice", ours)
	}
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	w.fail = func(lever.Undo) error {
		if calls++; calls > 100 {
			cancel()
			return fmt.Errorf("squeue: %w", ctx.Err())
		}
		return nil
	}
	r, err := w.restore(ctx)
	if err == nil || r.Undone != 100 || r.More != ours-100 || len(niceless(w)) != 300-ours+100 {
		t.Errorf("%+v, %v: %d of %d jobs have no nice", r, err, len(niceless(w)), len(w.jobs))
	}
	w.fail = nil
	if r, err := w.restore(t.Context()); err != nil || r.Undone != ours-100 || len(niceless(w)) != 300 {
		t.Errorf("%+v, %v: %d of %d jobs have no nice", r, err, len(niceless(w)), len(w.jobs))
	}
}

func niceless(w *world) (ids []slurm.JobID) {
	for id, j := range w.jobs {
		if j.Nice == 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

func TestANiceThatAJobWasSubmittedWithIsTakenBackThoughNoLedgerNamesIt(t *testing.T) {
	w := newWorld()
	j := w.job(1, 10, 1000, "")
	j.AdminComment = "epplan:" + slurm.TokenWithNice("0123456789abcdef", 12)
	w.setNice(1, 12)
	if j.NiceAtSubmit() != 12 {
		t.Fatalf("%q", j.AdminComment)
	}
	if r, err := w.restore(t.Context()); err != nil || r.Undone != 1 || j.Nice != 0 {
		t.Errorf("%+v, %v, nice %d", r, err, j.Nice)
	}
}

func TestWhatIsLeftIsCountedWithoutChangingAnything(t *testing.T) {
	w := ranked()
	s := w.open(t)
	step(t, s)
	w.now = w.now.Add(2 * time.Minute)
	step(t, s)
	snap, err := w.snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const want = "the Nice of 2 jobs, the weight of a node, the sleep of 2 nodes"
	for _, by := range []*steer.Snapshot{nil, snap} {
		left, err := steer.ReadLeftovers(".", w.disk.Read, by)
		if got := left.String(); err != nil || got != want {
			t.Errorf("by Slurm %t: %q, %v", by != nil, got, err)
		}
	}
	if _, err := s.UndoAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left, err := steer.ReadLeftovers(".", w.disk.Read, nil); err != nil || left.String() != "" {
		t.Errorf("%q, %v", left.String(), err)
	}
}
