package store_test

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// scroll is all outcomes that came, as a store should count them.
type scroll struct {
	tb    testing.TB
	store *store.Store
	path  string
	now   time.Time
	kept  []scrolled // whose details are there
	gone  []scrolled // pruned ones
	out   []taken    // taken out
	since []time.Time

	compacted int64 // outcomes
}

// scrolled is an outcome with its decision and when it came.
type scrolled struct {
	record.Outcome
	decision record.Decision
	received time.Time
	batch    int // of pruning
}

// taken is an outcome that was taken out, as it was and as the store told it.
type taken struct {
	scrolled
	kept record.RecordedRun
}

// forget takes some outcomes out.
func (s *scroll) forget(t *rapid.T) {
	page, err := s.store.RecordedRuns(t.Context(), &store.RunFilter{Cluster: "alpha"}, false, 0, 1000)
	if err != nil || len(page.Runs) != len(s.kept) || page.Next != 0 {
		t.Fatalf("%d outcomes are kept, %d are told: %v", len(s.kept), len(page.Runs), err)
	}
	var ids []int64
	for _, k := range page.Runs {
		if rapid.Bool().Draw(t, "forget") {
			i := slices.IndexFunc(s.kept, func(o scrolled) bool { return o.Key() == k.Outcome.Key() })
			s.out = append(s.out, taken{s.kept[i], k})
			s.kept = slices.Delete(s.kept, i, i+1)
			ids = append(ids, k.ID)
		}
	}
	f, err := s.store.Forget(t.Context(), ids, nil)
	if err != nil || f.Runs != int64(len(ids)) {
		t.Fatalf("%+v, %v", f, err)
	}
}

// remember puts some of them back.
func (s *scroll) remember(t *rapid.T) {
	var back []record.RecordedRun
	s.out = slices.DeleteFunc(s.out, func(o taken) bool {
		if rapid.IntRange(0, 2).Draw(t, "leave") == 0 {
			return false
		}
		back = append(back, o.kept)
		s.kept = append(s.kept, o.scrolled)
		return true
	})
	for range 2 {
		if _, err := s.store.Remember(t.Context(), back); err != nil {
			t.Fatal(err)
		}
	}
}

// open opens the store again.
func (s *scroll) open(t *rapid.T) {
	if s.store != nil {
		if err := s.store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	opened, err := store.Open(t.Context(), s.path, &store.Options{Now: func() time.Time { return s.now }})
	if err != nil {
		t.Fatal(err)
	}
	s.store = opened
}

// draw returns an outcome: one of few jobs, on one of few nodes, that ended on one of
// few days.
func (s *scroll) draw(t *rapid.T) scrolled {
	job := rapid.Int64Range(0, 6).Draw(t, "job")
	o := outcome(int(job))
	o.JobID, o.RunID = job, fmt.Sprintf("run-%d-%d", job, rapid.IntRange(0, 5).Draw(t, "run"))
	o.Workload = rapid.SampledFrom([]string{"a", "a", "b", ""}).Draw(t, "workload")
	o.GPUModel = "V100"
	o.Arm = rapid.SampledFrom([]live.Arm{
		live.ArmTreated, live.ArmTreated, live.ArmHeldOut, live.ArmConstant, live.ArmExcluded,
	}).Draw(t, "arm")
	o.ExitState = rapid.SampledFrom([]string{
		record.Completed, record.Completed, record.Completed, "FAILED", "REQUEUED", "",
	}).Draw(t, "state")
	o.Started, o.Ended = time.Time{},
		start.Add(time.Duration(rapid.IntRange(-30, 90).Draw(t, "hours"))*time.Hour)
	if rapid.IntRange(0, 9).Draw(t, "endless") == 0 {
		o.Ended = time.Time{}
	}
	o.Submitted = start.Truncate(time.Second)
	if rapid.IntRange(0, 5).Draw(t, "unsubmitted") == 0 {
		o.Submitted = time.Time{}
	}
	o.Unmatched = rapid.IntRange(0, 9).Draw(t, "unmatched") == 0
	energy := func(name string) live.Number {
		if rapid.IntRange(0, 6).Draw(t, name+" unknown") == 0 {
			return live.Number{}
		}
		return live.Known(float64(rapid.IntRange(1, 1e6).Draw(t, name)))
	}
	o.GPUEnergyJ, o.NodeEnergyJ, o.TimeS = energy("gpu"), energy("node"), live.Number{}
	if rapid.IntRange(0, 6).Draw(t, "time unknown") > 0 { // long enough that the power can be
		o.TimeS = live.Known(float64(rapid.IntRange(600, 1e5).Draw(t, "time")))
	}
	o.Setting.Core = dvfsmodel.MHz(rapid.SampledFrom([]int{900, 1200}).Draw(t, "core"))
	d := decision(int(job))
	d.JobID, d.RunID, d.Node = max(job, 1), o.RunID, o.Node
	d.Token, d.Workload, d.GPUModel = "", o.Workload, o.GPUModel // a row with the outcome's, once it is compacted
	d.HoldOut, d.DefaultJ = live.Known(rapid.SampledFrom([]float64{0.05, 0.2}).Draw(t, "lot")),
		energy("default")
	d.ConstantArm = rapid.SampledFrom([]live.Number{{}, live.Known(0), live.Known(0.1)}).Draw(t,
		"constant arm")
	d.Setting.Core = dvfsmodel.MHz(rapid.SampledFrom([]int{900, 1200, 1380}).Draw(t, "decided"))
	d.Created = s.now.Add(-time.Duration(rapid.IntRange(0, 50).Draw(t, "age")) * time.Hour)
	return scrolled{Outcome: *o, decision: *d, received: s.now}
}

// deliver delivers an outcome, and some of them again.
func (s *scroll) deliver(t *rapid.T) {
	o := s.draw(t)
	decided := o.JobID > 0 && rapid.IntRange(0, 4).Draw(t, "decided at all") > 0
	if decided {
		id, err := s.store.PutDecision(t.Context(), &o.decision)
		if err != nil {
			t.Fatal(err)
		}
		o.DecisionID = id
	} else {
		o.decision = record.Decision{}
	}
	for again := range rapid.IntRange(1, 3).Draw(t, "deliveries") {
		receipt, err := s.store.PutOutcome(t.Context(), &o.Outcome)
		if err != nil {
			t.Fatal(err)
		}
		if receipt == store.Stored && again == 0 {
			o.Ended, o.Submitted = record.StoredTime(o.Ended), record.StoredTime(o.Submitted)
			s.kept = append(s.kept, o)
		}
	}
	s.now = s.now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "later")) * time.Hour)
}

// compact has what came before a time take less room.
func (s *scroll) compact(t *rapid.T) {
	before := s.now.Add(-time.Duration(rapid.IntRange(0, 60).Draw(t, "in detail")) * time.Hour)
	n, err := s.store.Compact(t.Context(), before)
	if err != nil {
		t.Fatal(err)
	}
	s.compacted += n
}

// prune removes what came before a time.
func (s *scroll) prune(t *rapid.T) {
	before := s.now.Add(-time.Duration(rapid.IntRange(0, 60).Draw(t, "keep")) * time.Hour)
	if _, err := s.store.Prune(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	s.out = nil // their decisions may be gone
	batch := len(s.gone) + 1
	s.kept = slices.DeleteFunc(s.kept, func(o scrolled) bool {
		if !o.received.Before(before) {
			return false
		}
		o.batch = batch
		s.gone = append(s.gone, o)
		return true
	})
}

// cell is the sums of jobs of a stratum at the same clocks.
type cell struct {
	ended, done, gpuRuns, nodeRuns, timeRuns, predicted       int64
	gpu, gpu2, node, node2, time, time2, defaultJ, predicted1 float64
}

// jobKey tells jobs apart, within what is compared.
func (o *scrolled) jobKey() string {
	if o.JobID > 0 && !o.Submitted.IsZero() {
		return fmt.Sprint(o.batch, o.JobID, o.Submitted, o.Workload, o.Arm)
	}
	return fmt.Sprint(o.batch, o.RunID)
}

// strata returns those of all jobs that ended since a time and before another one, the plain way.
func (s *scroll) strata(since, until time.Time) map[string]cell {
	jobs := make(map[string][]scrolled)
	for _, o := range slices.Concat(s.kept, s.gone) {
		if o.Unmatched || o.Workload == "" || o.Arm == live.ArmExcluded || o.ExitState == "" ||
			o.ExitState == "REQUEUED" {
			continue
		}
		jobs[o.jobKey()] = append(jobs[o.jobKey()], o)
	}
	cells := make(map[string]cell)
	for _, runs := range jobs {
		key, one, end := countJob(runs)
		pruned := runs[0].batch > 0
		middle := time.Date(end.Year(), end.Month(), 15, 0, 0, 0, 0, time.UTC)
		switch {
		case !until.IsZero() && (pruned && !middle.Before(until) || !pruned && !end.Before(until)):
			continue
		case !until.IsZero() && pruned && middle.Before(since):
			continue
		case !pruned && end.Before(since),
			until.IsZero() && pruned && end.Format("2006-01") < since.Format("2006-01"):
			continue
		}
		if pruned {
			one.ended, one.done = 0, 0
			if one.gpuRuns+one.nodeRuns+one.timeRuns == 0 {
				continue
			}
		}
		c := cells[key]
		c.ended, c.done, c.gpuRuns, c.nodeRuns, c.predicted = c.ended+one.ended, c.done+one.done,
			c.gpuRuns+one.gpuRuns, c.nodeRuns+one.nodeRuns, c.predicted+one.predicted
		c.gpu, c.gpu2, c.node, c.node2 = c.gpu+one.gpu, c.gpu2+one.gpu*one.gpu, c.node+one.node,
			c.node2+one.node*one.node
		c.timeRuns, c.time, c.time2 = c.timeRuns+one.timeRuns, c.time+one.time, c.time2+one.time*one.time
		c.defaultJ, c.predicted1 = c.defaultJ+one.defaultJ, c.predicted1+one.predicted1
		cells[key] = c
	}
	return cells
}

// countJob returns what a job on all its nodes came to, in which stratum at which
// clocks, and when it ended.
func countJob(runs []scrolled) (key string, c cell, end time.Time) {
	lot, constant, core := math.Inf(1), math.Inf(1), math.Inf(1)
	done, gpu, node, timed, predicted := true, true, true, true, true
	for i := range runs {
		o := &runs[i]
		lot, constant = min(lot, o.decision.HoldOut.Or(-1)), min(constant, o.decision.ConstantArm.Or(0))
		decided := float64(o.Setting.Core)
		if o.DecisionID != 0 {
			decided = float64(o.decision.Setting.Core)
		}
		core = min(core, decided)
		at := o.Ended
		if at.IsZero() {
			at = record.StoredTime(o.received)
		}
		if at.After(end) {
			end = at
		}
		done = done && o.ExitState == record.Completed
		g, gpuKnown := o.GPUEnergyJ.Get()
		n, nodeKnown := o.NodeEnergyJ.Get()
		took, timeKnown := o.TimeS.Get()
		timed, c.time = timed && timeKnown, max(c.time, took)
		d, predictedKnown := o.decision.DefaultJ.Get()
		gpu, node, predicted = gpu && gpuKnown, node && nodeKnown, predicted && predictedKnown
		c.gpu, c.node, c.defaultJ = c.gpu+g, c.node+n, c.defaultJ+d
	}
	one := cell{ended: 1}
	if done {
		one.done = 1
		if gpu {
			one.gpuRuns, one.gpu = 1, c.gpu
		}
		if node {
			one.nodeRuns, one.node = 1, c.node
		}
		if timed {
			one.timeRuns, one.time = 1, c.time
		}
		if gpu && predicted {
			one.predicted, one.defaultJ, one.predicted1 = 1, c.defaultJ, c.gpu
		}
	}
	if runs[0].Arm == live.ArmConstant {
		core = 0 // their scatter is that of all of them
	}
	return fmt.Sprintf("%s %s %g %g %g", runs[0].Workload, runs[0].Arm, lot, constant, core), one, end
}

// check compares the store with the plain way.
func (s *scroll) check(t *rapid.T) {
	ends := append(slices.Clone(s.since), []time.Time{
		{},
		start.Add(-100 * time.Hour), start, start.Add(13*time.Hour + time.Microsecond),
		start.Truncate(24 * time.Hour).Add(48 * time.Hour), start.Add(400 * time.Hour),
	}...)
	for i, since := range ends {
		s.checkPeriod(t, since, time.Time{})
		if until := ends[(7*i+3)%len(ends)]; !until.IsZero() && until.After(since) {
			s.checkPeriod(t, since, until)
		}
		s.checkPeriod(t, since, since.Add(5*time.Hour)) // often within a day
	}
	s.checkDays(t)
}

// checkPeriod compares the strata of a period with the plain way.
func (s *scroll) checkPeriod(t *rapid.T, since, until time.Time) {
	if since.IsZero() && until.Before(start.Add(-1000*time.Hour)) {
		until = time.Time{}
	}
	want := make(map[string]record.Stratum)
	cells := s.strata(since, until)
	for _, key := range slices.Sorted(mapsKeys(cells)) {
		c := cells[key]
		var workload, arm string
		var lot, constant, core float64
		if _, err := fmt.Sscanf(key, "%s %s %g %g %g", &workload, &arm, &lot, &constant,
			&core); err != nil {
			t.Fatal(err)
		}
		of := fmt.Sprint(workload, arm, lot, constant)
		w := want[of]
		w.Endings.Ended, w.Endings.Completed = w.Endings.Ended+c.ended, w.Endings.Completed+c.done
		w.Predicted.Runs, w.Predicted.DefaultJ, w.Predicted.GPUJ = w.Predicted.Runs+c.predicted,
			w.Predicted.DefaultJ+c.defaultJ, w.Predicted.GPUJ+c.predicted1
		addMean(&w.GPU, c.gpuRuns, c.gpu, c.gpu2)
		addMean(&w.Node, c.nodeRuns, c.node, c.node2)
		addMean(&w.Time, c.timeRuns, c.time, c.time2)
		want[of] = w
	}
	strata, err := s.store.Strata(t.Context(), "alpha", since, until)
	if err != nil {
		t.Fatal(err)
	}
	if len(strata) != len(want) {
		t.Fatalf("from %s until %s: %d strata, not %d: %+v, want %+v", since, until, len(strata), len(want),
			strata, want)
	}
	for _, g := range strata {
		w, ok := want[fmt.Sprint(g.Workload, g.Arm, g.HoldOut, g.ConstantArm)]
		if !ok || g.Endings != w.Endings || g.Predicted.Runs != w.Predicted.Runs ||
			!near(g.Predicted.DefaultJ, w.Predicted.DefaultJ) ||
			!near(g.Predicted.GPUJ, w.Predicted.GPUJ) || !sameMean(g.GPU, w.GPU) ||
			!sameMean(g.Node, w.Node) || !sameMean(g.Time, w.Time) {
			t.Fatalf("from %s until %s: %+v, not %+v", since, until, g, w)
		}
	}
}

// checkDays compares the sums of days, which pruning leaves alone.
func (s *scroll) checkDays(t *rapid.T) {
	type day struct {
		runs, gpu int64
		joules    float64
	}
	want := make(map[string]day)
	for _, o := range slices.Concat(s.kept, s.gone) {
		if o.Unmatched {
			continue
		}
		at := o.Ended
		if at.IsZero() {
			at = o.received
		}
		key := fmt.Sprint(at.UTC().Format(time.DateOnly), o.ExitState, o.Arm)
		d := want[key]
		d.runs++
		if e, ok := o.GPUEnergyJ.Get(); ok {
			d.gpu, d.joules = d.gpu+1, d.joules+e
		}
		want[key] = d
	}
	days, err := s.store.RunDays(t.Context(), "alpha", time.Unix(0, 0))
	if err != nil || len(days) != len(want) {
		t.Fatalf("%d sums of days, not %d: %v", len(days), len(want), err)
	}
	for _, d := range days {
		if w := want[fmt.Sprint(d.Day.Format(time.DateOnly), d.ExitState, d.Arm)]; d.Runs != w.runs ||
			d.GPURuns != w.gpu || !near(d.GPUEnergyJ, w.joules) {
			t.Fatalf("%+v, not %+v", d, w)
		}
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*(1+math.Abs(b)) }

func mapsKeys[K cmp.Ordered, V any](m map[K]V) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// addMean adds runs at the same clocks to a mean, by its definition.
func addMean(m *record.Mean, runs int64, sum, squares float64) {
	if runs == 0 {
		return
	}
	within := m.Variance * float64(m.Freedom)
	m.Value = (m.Value*float64(m.Runs) + sum) / float64(m.Runs+runs)
	m.Runs += runs
	if runs > 1 {
		m.Freedom += runs - 1
		m.Variance = (within + max(0, squares-sum*sum/float64(runs))) / float64(m.Freedom)
	}
}

// Whatever comes, again, late or on several nodes, and whatever is pruned: what is
// kept up to date is what all outcomes together say.
func TestSumsThatAreKeptAreThoseOfAllOutcomes(t *testing.T) {
	dir, n, tb := tempDir(t), 0, t
	rapid.Check(t, func(t *rapid.T) {
		n++
		s := &scroll{tb: tb, path: filepath.Join(dir, strconv.Itoa(n)+".db"), now: start}
		defer func() { _ = s.store.Close() }()
		s.open(t)
		t.Repeat(map[string]func(*rapid.T){
			"deliver": s.deliver, "deliver more": s.deliver, "and more": s.deliver, "prune": s.prune,
			"compact": s.compact, "reopen": s.open, "check": s.check,
			"forget": s.forget, "remember": s.remember,
		})
		s.check(t)
	})
}
