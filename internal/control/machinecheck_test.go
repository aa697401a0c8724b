package control

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/savings"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

func stringsReader(text string) io.Reader { return strings.NewReader(text) }

// quickDir returns a folder in memory where there is such a place: what syncing takes is no
// part of these tests.
func quickDir(tb testing.TB) string {
	tb.Helper()
	const memory = "/dev/shm"
	if info, err := os.Stat(memory); err != nil || !info.IsDir() {
		return tb.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "epplan-control") //nolint:usetesting // TempDir is on disk
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// learn has the workload run until there is a model.
func (m *machine) learn(t *rapid.T) {
	for id := range slurm.JobID(5) {
		m.clock.move(time.Minute)
		now := m.clock.read()
		j := &slurm.Job{
			ID: id + 1, Name: "train", User: "ada", UID: 1000, Partition: "gpu", Submit: now, Start: now,
			NodeCount: 1, ArrayTask: -1,
			State: slurm.JobState{Base: slurm.Running}, Allocated: slurm.TRES{"gres/gpu": 1},
			TimeLimit: live.LimitOf(time.Hour),
		}
		m.jobs[j.ID], m.most[j.ID] = j, j.TimeLimit
		r := &agentRun{request: ask(j.ID)}
		m.fresh(t, r, j)
		m.runs = append(m.runs, r)
		r.outcome = (&rig{clock: m.clock}).ran(r.decision, r.request.RunID, memoryBound())
		j.State.Base, j.End = slurm.Completed, m.clock.read()
		m.deliver(t, r)
		if err := m.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if m.status().Models == 0 {
		t.Fatal("there is no model: nothing is tried")
	}
}

// inStore returns a run's outcome as it was recorded; nil: it wasn't, or its details were
// removed.
func (m *machine) inStore(t *rapid.T, r *agentRun) *record.Outcome {
	all, err := m.store.OutcomesOfJob(t.Context(), "alpha", int64(r.request.Job))
	if err != nil {
		t.Fatal(err)
	}
	var found []record.Outcome
	for i := range all {
		if all[i].RunID == r.request.RunID {
			found = append(found, all[i])
		}
	}
	switch len(found) {
	case 0:
		return nil
	case 1:
		return &found[0]
	}
	t.Fatalf("the outcome of run %s is there %d times", r.request.RunID, len(found))
	return nil
}

// read takes note of an outcome that was just recorded, and checks it.
func (m *machine) read(t *rapid.T, r *agentRun) {
	o := m.inStore(t, r)
	if o == nil {
		t.Fatalf("the outcome of run %s is acknowledged, and isn't there", r.request.RunID)
	}
	r.kept, m.kept[r.request.RunID] = o, r
	joules, took := o.GPUEnergyJ, o.TimeS
	j := m.jobs[r.request.Job]
	suspended := !m.away && j != nil && j.Restarts == 0 && !r.decision.Created.Before(j.Submit) &&
		j.Suspended.After(r.decision.Created)
	if suspended && !o.Restarted.Suspended || o.Restarted.Suspended && !m.suspended[r.request.Job] {
		t.Fatalf("job %+v was suspended: %t; recorded %+v", j, suspended, o)
	}
	// It ended on its node well after its job did, or its job was suspended: it is kept apart.
	if o.Restarted.Late || o.Restarted.Suspended {
		joules, took = o.Restarted.GPUEnergyJ, o.Restarted.TimeS
	}
	if limit, sent := r.decision.Limit, r.outcome.TimeS.Or(0); limit.IsSet() && limit.Seconds() < sent &&
		o.Implausible.TimeS == r.outcome.TimeS { // Slurm had ended it before, and doesn't say any more when
		joules, took = o.Implausible.GPUEnergyJ, o.Implausible.TimeS
	}
	if o.DecisionID == 0 && o.Implausible.TimeS == r.outcome.TimeS {
		// Nobody but its node says which of the job's starts it was, or which job of that number.
		joules, took = o.Implausible.GPUEnergyJ, o.Implausible.TimeS
	}
	setting := o.Setting
	if o.DecisionID == 0 && r.lost && o.Workload == "" { // nobody but its node says that these were decided
		setting = o.Implausible.Setting
	}
	if joules != r.outcome.GPUEnergyJ || took != r.outcome.TimeS || setting != r.outcome.Setting {
		t.Fatalf("sent %+v, recorded %+v", r.outcome, o)
	}
	decisions, err := m.store.DecisionsOfJob(t.Context(), "alpha", o.JobID)
	if err != nil {
		t.Fatal(err)
	}
	r.joined = slices.ContainsFunc(decisions, func(d record.Decision) bool { return d.ID == o.DecisionID })
	if !r.joined && !r.lost {
		t.Fatalf("run %s was decided, and its outcome has no decision: %+v", r.request.RunID, o)
	}
	if o.Unmatched && m.hasAnother(o) {
		return // one that was sent late is taken for the run that Slurm has now, and only one counts
	}
	same := o.Workload == r.decision.Workload || r.decision.Workload == "" // that is found out later
	if r.joined && (o.Arm != r.decision.Arm || !same) {
		t.Fatalf("run %s was told %+v, and is recorded as %+v", r.request.RunID, r.decision, o)
	}
}

// hasAnother reports whether an outcome counts that is taken for the same run, of the same start of a job.
func (m *machine) hasAnother(o *record.Outcome) bool {
	for _, r := range m.kept {
		k := r.kept
		if k.RunID != o.RunID && k.JobID == o.JobID && k.Node == o.Node && k.Restart == o.Restart &&
			k.Submitted.Equal(o.Submitted) && !k.Unmatched {
			return true
		}
	}
	return false
}

// check compares what was saved with a plain sum over everything that was recorded.
func (m *machine) check(t *rapid.T) {
	if m.faulty.err() == nil {
		if err := m.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	got, err := m.Queries.Savings(t.Context(), query.ForEPD(), time.Time{}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if problem := differs(&got, m.plainly()); problem != "" {
		t.Fatal(problem)
	}
	status := m.status()
	if status.Outcomes != m.taken || status.Submissions != m.submissions ||
		status.Applied+status.HeldOut > status.Decisions {
		t.Fatalf("%d outcomes were taken and %d submissions came: %+v", m.taken, m.submissions, status)
	}
}

// differs says where a saving that is shown isn't what a plain sum over all that was recorded comes to.
func differs(got *epdapi.Savings, want []savings.Stratum) string {
	e := savings.Measure(want)
	for name, pair := range map[string][2]float64{
		"runs":     {float64(got.GPU.Runs), float64(e.Treated)},
		"held out": {float64(got.GPU.Against), float64(e.Held)},
		"saved":    {got.GPU.SavedJ, e.Saved}, "low": {got.GPU.LowJ, e.Low}, "high": {got.GPU.HighJ, e.High},
		"baseline": {got.GPU.BaselineJ, e.Baseline}, "all treated": {float64(got.Treated), treatedIn(want)},
	} {
		// Sums of squares leave that much of a scatter that isn't there.
		if math.Abs(pair[0]-pair[1]) > 1e-6*max(1, math.Abs(pair[1]), e.Baseline) {
			return fmt.Sprintf("%s: %v, by a plain sum %v\n%+v\n%+v", name, pair[0], pair[1], got, want)
		}
	}
	return ""
}

func treatedIn(strata []savings.Stratum) (runs float64) {
	for i := range strata {
		runs += float64(strata[i].Treated.Runs)
	}
	return runs
}

// jobKind is what tells apart jobs that are compared.
type jobKind struct {
	workload, gpuModel string
	holdOut, constant  float64
}

// jobParts tells apart parts of jobs that count as jobs of their own: those in other
// arms, and those whose details were removed at other times. What of a job ran on
// several nodes is added up.
type jobParts struct {
	job       int64
	submitted time.Time
	workload  string
	arm       live.Arm
	removed   int
	run       string // of no job, or of one that Slurm didn't say when it was submitted
}

// jobSum is what a job came to.
type jobSum struct {
	jobKind
	arm     live.Arm
	setting dvfsmodel.Setting
	joules  float64
	counts  bool // it is completed, and its energy known on each node
}

// jobSums returns all jobs that were recorded in an arm.
func (m *machine) jobSums() map[jobParts]*jobSum {
	sums := make(map[jobParts]*jobSum)
	for _, run := range slices.Sorted(maps.Keys(m.kept)) {
		r := m.kept[run]
		o := r.kept
		if o.Workload == "" || o.Arm == live.ArmExcluded || o.ExitState == string(slurm.Requeued) {
			continue
		}
		key := jobParts{
			job: o.JobID, submitted: o.Submitted, workload: o.Workload, arm: o.Arm, removed: r.removed,
		}
		if o.Submitted.IsZero() || o.JobID <= 0 {
			key.run = run
		}
		one := jobSum{
			jobKind: jobKind{o.Workload, o.GPUModel, -1, 0}, arm: o.Arm, setting: o.Setting, counts: true,
		}
		if r.joined {
			one.holdOut, one.constant = r.parts.holdOut.Or(-1), r.parts.constant.Or(0)
			one.setting = dvfsmodel.Setting{Core: r.decision.Core, Mem: r.decision.Mem}
		}
		joules, known := o.GPUEnergyJ.Get()
		sum := sums[key]
		if sum == nil {
			sum = &one
			sums[key] = sum
		}
		sum.holdOut, sum.constant = min(sum.holdOut, one.holdOut), min(sum.constant, one.constant)
		sum.setting.Core = min(sum.setting.Core, one.setting.Core)
		sum.joules, sum.counts = sum.joules+joules, sum.counts && known && o.ExitState == record.Completed
	}
	return sums
}

// plainly returns the arms by kind of jobs, from all outcomes that were recorded.
func (m *machine) plainly() []savings.Stratum {
	type group struct {
		jobKind
		arm     live.Arm
		setting dvfsmodel.Setting
	}
	energies := make(map[group][]float64)
	for _, s := range m.jobSums() {
		g := group{s.jobKind, s.arm, s.setting}
		if s.arm == live.ArmConstant {
			g.setting = dvfsmodel.Setting{}
		}
		if s.counts {
			energies[g] = append(energies[g], s.joules)
		}
	}
	arms := make(map[jobKind]*savings.Arms)
	for g, all := range energies {
		if arms[g.jobKind] == nil {
			arms[g.jobKind] = &savings.Arms{}
		}
		switch g.arm {
		case live.ArmTreated:
			pool(&arms[g.jobKind].Treated, all)
		case live.ArmHeldOut:
			pool(&arms[g.jobKind].Held, all)
		case live.ArmConstant, live.ArmExcluded:
		}
	}
	strata := make([]savings.Stratum, 0, len(arms))
	for _, k := range slices.SortedFunc(maps.Keys(arms), compareKinds) {
		strata = append(strata, arms[k].SavedStratum())
	}
	return strata
}

func compareKinds(a, b jobKind) int {
	return cmp.Or(cmp.Compare(a.workload, b.workload), cmp.Compare(a.gpuModel, b.gpuModel),
		cmp.Compare(a.holdOut, b.holdOut),
		cmp.Compare(a.constant, b.constant))
}

// pool adds runs at the same clocks to a mean, and their scatter to its variance.
func pool(to *record.Mean, energies []float64) {
	mean, n := 0.0, float64(len(energies))
	for _, e := range energies {
		mean += e / n
	}
	within := to.Variance * float64(to.Freedom)
	for _, e := range energies {
		within += (e - mean) * (e - mean)
	}
	all := float64(to.Runs) + n
	to.Value = (to.Value*float64(to.Runs) + mean*n) / all
	to.Runs += int64(len(energies))
	if to.Freedom += int64(len(energies)) - 1; to.Freedom > 0 {
		to.Variance = within / float64(to.Freedom)
	}
}
