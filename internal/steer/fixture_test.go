package steer_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/steer"
	"github.com/epplan/epplan/internal/testkit/spooltest"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/lever"
)

// world is a Slurm in memory with the effects measured on 22.05: a nice lowers
// the priority by as much, never below 1; a change of a held job's nice would
// release it, which no test forgives.
type world struct {
	now             time.Time
	jobs            map[slurm.JobID]*slurm.Job
	base            map[slurm.JobID]int64 // priority at nice 0
	nodes           map[string]*slurm.Node
	saving          bool
	suspend, resume time.Duration
	exempt          slurm.PowerSaving // what the site keeps awake

	settings steer.Settings
	disk     *spooltest.FS
	calls    int
	fail     func(u lever.Undo) error // before a change
	crash    int                      // the call at which the process ends; 0: none
	after    bool                     // the crash comes after the call's effect
	booted   time.Time                // of slurmctld
	meddle   int                      // the call before which somebody takes back what was steered; 0: none
	odd      slurm.Unread             // jobs whose records can't be read at present
}

var start = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

var errCrash = errors.New("the process ended")

func newWorld() *world {
	w := &world{
		now: start, jobs: map[slurm.JobID]*slurm.Job{}, base: map[slurm.JobID]int64{},
		nodes: map[string]*slurm.Node{}, disk: spooltest.New(),
	}
	if err := w.disk.MakeDir("levers"); err != nil {
		panic(err) // it hasn't been told to crash
	}
	rules := config.Default().Live
	rules.Mode = live.Enforce
	w.settings = steer.Settings{Version: "1", Live: rules, Profiles: config.BuiltinProfiles()}
	return w
}

// job adds a pending job that could start now.
func (w *world) job(id slurm.JobID, uid uint32, base int64, comment string) *slurm.Job {
	j := &slurm.Job{
		ID: id, UID: uid, User: "u" + strconv.Itoa(int(uid)), Partition: "gpu", ArrayTask: -1,
		State: slurm.JobState{Base: slurm.Pending}, Comment: comment,
		Submit: start.Add(-time.Hour), Eligible: start.Add(-time.Hour), Reason: "Priority",
	}
	w.jobs[id], w.base[id] = j, base
	w.rank(j)
	return j
}

func (w *world) rank(j *slurm.Job) {
	if w.base[j.ID] == 0 {
		j.Priority = 0
		return
	}
	j.Priority = uint32(max(1, w.base[j.ID]-j.Nice))
}

func (w *world) setNice(id slurm.JobID, nice int64) {
	w.jobs[id].Nice = nice
	w.rank(w.jobs[id])
}

func (w *world) node(name, gpu string, partitions ...string) *slurm.Node {
	n := &slurm.Node{
		Name: name, State: slurm.NodeState{Base: "IDLE"}, Weight: 1, Partitions: partitions,
		Boot: start.Add(-24 * time.Hour),
		Gres: []slurm.Gres{{Name: "gpu", Type: gpu, Count: 4}},
	}
	w.nodes[name] = n
	return n
}

func (w *world) snapshot(context.Context) (*steer.Snapshot, error) {
	w.now = w.now.Add(time.Second)
	s := &steer.Snapshot{At: w.now, UnreadJobs: w.odd}
	for _, id := range slices.Sorted(maps.Keys(w.jobs)) {
		if w.odd.Records == 0 || !w.odd.MayList(id.String()) {
			s.Jobs = append(s.Jobs, *w.jobs[id])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		s.Nodes = append(s.Nodes, *w.nodes[name])
	}
	return s, nil
}

// call counts a lever's call, and ends the process at the chosen one.
func (w *world) call(u lever.Undo, do func() error) error {
	if w.fail != nil {
		if err := w.fail(u); err != nil {
			return err
		}
	}
	w.calls++
	if w.calls == w.meddle {
		w.takeBack()
	}
	if w.calls == w.crash && !w.after {
		panic(errCrash)
	}
	err := do()
	w.now = w.now.Add(time.Millisecond)
	if w.calls == w.crash {
		panic(errCrash)
	}
	return err
}

// takeBack is an administrator who gives all jobs and nodes their own values.
func (w *world) takeBack() {
	for id, j := range w.jobs {
		if j.Nice != ownNice[id] {
			w.setNice(id, ownNice[id])
		}
		if j.BeginAtSubmit() > 0 && j.Eligible.After(w.now) {
			j.Eligible = w.now
		}
	}
	for _, n := range w.nodes {
		n.Weight = 1
	}
}

// PowerSaving returns what Slurm says of power saving.
func (w *world) PowerSaving(context.Context) (slurm.PowerSaving, error) {
	saving := w.exempt
	saving.Enabled, saving.Suspend, saving.Resume = w.saving, w.suspend, w.resume
	return saving, nil
}

// Change is part of steer.Levers.
func (w *world) Change(_ context.Context, from string, u lever.Undo) error {
	return w.call(u, func() error { return w.set(u, from, u.After) })
}

// Undo is part of steer.Levers.
func (w *world) Undo(_ context.Context, u lever.Undo) error {
	return w.call(u, func() error { return w.set(u, u.After, u.Before) })
}

// pending returns a job that waits.
func (w *world) pending(id slurm.JobID) (*slurm.Job, error) {
	j := w.jobs[id]
	switch {
	case j == nil:
		return nil, slurm.ErrNotFound
	case j.State.Base != slurm.Pending:
		return nil, slurm.ErrNotPending
	}
	return j, nil
}

func (w *world) set(u lever.Undo, from, to string) error {
	switch u.Lever {
	case lever.Nice:
		j, err := w.pending(u.Job)
		switch {
		case err != nil:
			return err
		case j.Held():
			return lever.ErrHeld
		case strconv.FormatInt(j.Nice, 10) != from:
			return lever.ErrChanged
		}
		nice, err := strconv.ParseInt(to, 10, 64)
		if err != nil {
			return err
		}
		w.setNice(u.Job, nice)
		return nil
	case lever.Weight:
		n := w.nodes[u.Node]
		if strconv.FormatUint(uint64(n.Weight), 10) != from {
			return lever.ErrChanged
		}
		weight, err := strconv.ParseUint(to, 10, 32)
		n.Weight = uint32(weight)
		return err
	case lever.Power:
		w.nodes[u.Node].State.Flags = map[string][]string{"power_down": {"POWERED_DOWN"}, "power_up": nil}[to]
		return nil
	case lever.Begin:
		j, err := w.pending(u.Job)
		switch {
		case err != nil:
			return err
		case lever.BeginOf(j, w.now) == to:
			return nil
		case lever.BeginOf(j, w.now) != from:
			return lever.ErrChanged
		}
		j.Eligible, j.Reason = w.now, "None"
		return nil
	case lever.Prefer:
		if w.jobs[u.Job].Prefer != from {
			return lever.ErrChanged
		}
		w.jobs[u.Job].Prefer = to
		return nil
	}
	return fmt.Errorf("lever %s: %w", u.Lever, slurm.ErrInvalid)
}

// open returns a steerer of this world, with what an earlier one left on its disk.
func (w *world) open(tb rapid.TB) *steer.Steerer {
	tb.Helper()
	return w.steerer(tb, 1000)
}

// steerer returns one that makes at most so many changes in a step.
func (w *world) steerer(tb rapid.TB, most int) *steer.Steerer {
	tb.Helper()
	s, err := steer.Open(&steer.Options{
		Source: w.snapshot, Levers: w, PowerSaving: w.PowerSaving,
		Booted:           func(context.Context) (time.Time, error) { return w.booted, nil },
		DefaultPartition: func(context.Context) (string, error) { return "gpu", nil },
		Settings:         func() *steer.Settings { return &w.settings },
		Dir:              "levers", Disk: w.disk, Clock: func() time.Time { return w.now }, MaxChanges: most,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func step(tb testing.TB, s *steer.Steerer) steer.StepReport {
	tb.Helper()
	r, err := s.Step(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// queue returns the jobs' numbers in the order in which Slurm would start them.
func (w *world) queue(ids ...slurm.JobID) []slurm.JobID {
	if len(ids) == 0 {
		ids = slices.Collect(maps.Keys(w.jobs))
	}
	slices.SortFunc(ids, func(a, b slurm.JobID) int {
		if p, q := w.jobs[a].Priority, w.jobs[b].Priority; p != q {
			return int(int64(q) - int64(p))
		}
		return int(a) - int(b)
	})
	return ids
}

func (w *world) nices() map[slurm.JobID]int64 {
	all := make(map[slurm.JobID]int64, len(w.jobs))
	for id, j := range w.jobs {
		all[id] = j.Nice
	}
	return all
}

func deadline(in time.Duration) string {
	return "epplan:deadline=" + start.Add(in).Format(time.RFC3339)
}
