package control

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// readings returns those of a run of a few seconds.
func readings(watts float64) record.Readings {
	s := record.NewReadingsSampler(1, time.Second)
	s.Add(0, 5*time.Second, watts, 1087)
	return s.Readings()
}

// report returns what the agent of a node tells.
func report(node string, watts float64, runs ...epdapi.NodeRun) *epdapi.NodeReport {
	return &epdapi.NodeReport{
		Node: node, Version: "1", At: start, Runs: runs,
		GPUs: []epdapi.NodeGPU{{
			GPU: epdapi.GPU{
				UUID: "GPU-" + node, Model: "V100", Power: watts, Setting: dvfsmodel.Setting{Core: 1087},
				ExternalChange: "somebody",
			}, Read: true, Journal: &epdapi.JournalEntry{Job: 1},
		}, {GPU: epdapi.GPU{UUID: "GPU-lost"}}},
		Troubles: []epdapi.Problem{{Message: "of bob's job"}},
	}
}

// hear has the controller take a report.
func (r *rig) hear(report *epdapi.NodeReport) epdapi.ReportAnswer {
	r.t.Helper()
	answer, err := r.Report(r.t.Context(), report)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer
}

func TestSeriesAreOfEndedRunsAndOfThoseThatLast(t *testing.T) {
	r := newRig(t, nil)
	r.job(1, nil)
	d := r.decide(ask(1))
	get := func(id slurm.JobID) epdapi.RunSeries {
		t.Helper()
		s, err := r.Queries.Series(t.Context(), query.ForEPD(), id)
		if err != nil || len(s.Runs) != 1 {
			t.Fatalf("%+v, %v", s, err)
		}
		return s.Runs[0]
	}
	r.flush()
	if s := get(1); s.Live || s.Missing == "" || len(s.Power.Mean) != 0 || s.RunID != "run-1" {
		t.Errorf("before a report: %+v", s)
	}
	run := epdapi.NodeRun{
		Run: epdapi.Run{
			ID: "run-1", Job: 1, GPUs: []string{"GPU-n1"}, Setting: dvfsmodel.Setting{Core: 1087},
			Started: start,
		}, Readings: readings(150),
	}
	r.hear(report("n1", 150, run))
	if s := get(1); !s.Live || s.Missing != "" || len(s.Power.Mean) != 5 ||
		s.Power.Mean[0] != live.Known(150) || s.Core.IntervalS != 1 || s.Setting.Core != 1087 ||
		!s.At.Equal(start) {
		t.Errorf("while it lasts: %+v", s)
	}
	o := r.ran(d, "run-1", memoryBound())
	o.Readings = readings(170)
	r.record(o, store.Stored)
	if s := get(1); s.Live || s.Missing != "" || s.Power.High[4] != live.Known(170) || s.Ended.IsZero() {
		t.Errorf("after its end: %+v", s)
	}
	r.run(2, memoryBound()) // by an agent that records none
	if s := get(2); s.Missing == "" || s.Power.Mean == nil || len(s.Power.Mean) != 0 {
		t.Errorf("without readings: %+v", s)
	}
	if _, err := r.Queries.Series(t.Context(), query.ForEPD(), 99); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("of a job that isn't: %v", err)
	}
}

// What was decided isn't always what a run has: its Prolog may have timed out.
func TestAListShowsTheClocksThatRunsHaveRatherThanThoseDecided(t *testing.T) {
	r := newRig(t, nil)
	r.job(1, func(j *slurm.Job) { j.Comment = "epplan:fixed=1087,877" })
	d := r.decide(ask(1))
	r.flush()
	locked := func(when string, want ...dvfsmodel.Setting) {
		t.Helper()
		page, err := r.Queries.Jobs(t.Context(), query.ForEPD(), &epdapi.JobQuery{})
		if err != nil || len(page.Jobs) != 1 {
			t.Fatalf("%+v, %v", page, err)
		}
		if got := page.Jobs[0]; got.Setting.Core != d.Core || !slices.Equal(got.Locked, want) {
			t.Errorf("%s: decided %v, locked %v, want %v", when, got.Setting, got.Locked, want)
		}
	}
	if d.Core == 0 {
		t.Fatalf("%+v", d)
	}
	locked("before a report")
	run := epdapi.NodeRun{Run: epdapi.Run{
		ID: "run-1", Job: 1, GPUs: []string{"GPU-n1"}, Setting: d.Setting, Started: start.Add(time.Hour),
	}}
	r.hear(report("n1", 150, run))
	locked("while it lasts", dvfsmodel.Setting{Core: d.Core, Mem: d.Mem})
	run.HandsOff = "the hook's deadline passed"
	r.hear(report("n1", 150, run))
	locked("after its Prolog timed out", dvfsmodel.Setting{})
	run.Started = start.Add(-time.Hour)
	r.hear(report("n1", 150, run))
	locked("of an earlier job of the same id")
	run.Started, run.Ended = start.Add(time.Hour), true
	r.hear(report("n1", 150, run))
	locked("until its outcome comes", dvfsmodel.Setting{})
	o := r.ran(d, "run-1", memoryBound())
	o.Setting = dvfsmodel.Setting{}
	r.record(o, store.Stored)
	locked("after its end", dvfsmodel.Setting{})
}

func TestSeriesAreSeenByWhoSeesTheJob(t *testing.T) {
	r := withJobs(t)
	for _, c := range []struct {
		who  query.Caller
		runs int
	}{{ada, 0}, {query.Caller{UID: 1001, Name: "bob"}, 1}, {operator, 1}, {root, 1}} {
		s, err := r.Queries.Series(t.Context(), c.who, 2)
		if c.runs == 0 && !errors.Is(err, store.ErrNotFound) ||
			c.runs > 0 && (err != nil || len(s.Runs) != c.runs) {
			t.Errorf("%s: %+v, %v", c.who.Name, s, err)
		}
	}
}

func TestClusterPowerIsThatOfFreshReportsAndSaysOfHowMany(t *testing.T) {
	r := newRig(t, nil)
	if p := r.Queries.Power(); p != (epdapi.ClusterPower{}) {
		t.Errorf("before any: %+v", p)
	}
	r.hear(report("n1", 100))
	r.clock.move(20 * time.Second)
	answer := r.hear(report("n2", 200,
		epdapi.NodeRun{Run: epdapi.Run{ID: "x", Job: 1, GPUs: []string{"GPU-n2"}}}))
	if answer.EveryS != 15 {
		t.Errorf("%+v", answer)
	}
	if p, want := r.Queries.Power(), (epdapi.ClusterPower{
		GPUW: 300, GPUs: 2, Nodes: 2, Unread: 2, Oldest: 20,
		Busy: 1, Held: 2,
	}); p != want {
		t.Errorf("%+v, want %+v", p, want)
	}
	r.clock.move(40 * time.Second)
	if p := r.Queries.Power(); p.GPUW != 200 || p.Nodes != 1 || p.Silent != 1 {
		t.Errorf("with one that is silent: %+v", p)
	}
	r.clock.move(25 * time.Hour)
	r.hear(report("n3", 50))
	if list := r.Queries.Nodes(t.Context(), query.ForEPD()); len(list.Nodes) != 1 ||
		list.Nodes[0].Name != "n3" ||
		!list.Nodes[0].Fresh {
		t.Errorf("reports of yesterday are kept: %+v", list)
	}
}

// Reports of more nodes are further apart, so that the controller's part doesn't grow.
func TestReportsOfManyNodesAreFurtherApart(t *testing.T) {
	r := newRig(t, nil)
	var answer epdapi.ReportAnswer
	for i := range 3000 {
		answer = r.hear(report(fmt.Sprintf("n%d", i), 1))
	}
	if answer.EveryS != 30 {
		t.Errorf("every %g s with 3,000 nodes", answer.EveryS)
	}
	r.clock.move(90 * time.Second)
	if p := r.Queries.Power(); p.Nodes != 3000 {
		t.Errorf("three of them apart: %+v", p)
	}
}

func TestUsersSeeNodesWithoutWhatConcernsOthers(t *testing.T) {
	r := withJobs(t)
	r.hear(report("n1", 100,
		epdapi.NodeRun{Run: epdapi.Run{ID: "a", Job: 1}, Readings: readings(1)},
		epdapi.NodeRun{Run: epdapi.Run{ID: "b", Job: 2}}))
	for _, c := range []struct {
		who            query.Caller
		runs, troubles int
		all            bool
	}{{ada, 1, 0, false}, {operator, 2, 1, true}, {root, 2, 1, true}} {
		n := r.Queries.Nodes(t.Context(), c.who).Nodes[0].Report
		if len(n.Runs) != c.runs || len(n.Troubles) != c.troubles || (n.GPUs[0].Journal != nil) != c.all ||
			(n.GPUs[0].ExternalChange != "") != c.all {
			t.Errorf("%s: %+v", c.who.Name, n)
		}
		for i := range n.Runs {
			if !n.Runs[i].Readings.IsZero() {
				t.Error("a list of nodes has readings")
			}
		}
	}
}

func TestAReportThatCannotBeIsRefused(t *testing.T) {
	r := newRig(t, nil)
	for name, change := range map[string]func(*epdapi.NodeReport){
		"no node":        func(n *epdapi.NodeReport) { n.Node = "" },
		"a strange node": func(n *epdapi.NodeReport) { n.Node = "a b\x1b" },
		"too many GPUs": func(n *epdapi.NodeReport) {
			n.GPUs = make([]epdapi.NodeGPU, epdapi.MaxReportGPUs+1)
		},
		"too many runs": func(n *epdapi.NodeReport) {
			n.Runs = make([]epdapi.NodeRun, epdapi.MaxReportRuns+1)
		},
		"a run on too many": func(n *epdapi.NodeReport) {
			n.Runs = []epdapi.NodeRun{{Run: epdapi.Run{GPUs: make([]string, epdapi.MaxReportGPUs+1)}}}
		},
		"negative power":    func(n *epdapi.NodeReport) { n.GPUs[0].Power = -1 },
		"power of no GPU":   func(n *epdapi.NodeReport) { n.GPUs[0].Power = math.Inf(1) },
		"a clock of no GPU": func(n *epdapi.NodeReport) { n.GPUs[1].Core = 1e9 },
	} {
		n := report("n1", 1)
		change(n)
		if _, err := r.Report(t.Context(), n); !errors.Is(err, ErrRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(r.reports.All()) != 0 {
		t.Error("one was kept")
	}
}

func TestAFitShowsItsRunsItsCurveAndWhichRunsSayNothing(t *testing.T) {
	r := newRig(t, nil)
	var last live.Decision
	for id := range slurm.JobID(6) {
		last = r.run(id+1, memoryBound())
	}
	failed := slurm.JobID(7)
	r.job(failed, nil)
	o := r.ran(r.decide(ask(failed)), ask(failed).RunID, memoryBound())
	o.ExitState = "FAILED"
	r.record(o, store.Stored)
	fit, err := r.Queries.Fit(t.Context(), query.ForEPD(), last.Workload, last.GPUModel)
	if err != nil || len(fit.Points) != 7 || fit.Model == nil || fit.Form == "" || fit.Created.IsZero() {
		t.Fatalf("%+v, %v", fit, err)
	}
	if p := fit.Points[0]; p.Used || p.Why == "" || p.JobID != 7 {
		t.Errorf("the failed run: %+v", p)
	}
	for _, p := range fit.Points[1:] {
		if !p.Used || !p.Within || p.Weight != 1 || math.Abs(p.Off.Or(9)) > 0.05 || !(p.EnergyJ.Or(0) > 0) ||
			!(p.PowerW.Or(0) > 0) {
			t.Errorf("%+v", p)
		}
	}
	if fit.Clocks != epdapi.ClocksFromAgent || len(fit.Curve) != 5 || fit.Curve[0].Core != 1380 ||
		fit.BaseCore != 1380 {
		t.Errorf("curve of %s: %+v", fit.Clocks, fit.Curve)
	}
	for _, p := range fit.Curve {
		if !(p.LowerS < p.TimeS && p.TimeS < p.UpperS && p.EnergyJ > 0) {
			t.Errorf("%+v", p)
		}
	}
	nobody, err := r.Queries.Fit(t.Context(), query.ForEPD(), "none", "V100")
	if err != nil || nobody.Model != nil || len(nobody.Points)+len(nobody.Curve) != 0 {
		t.Errorf("%+v, %v", nobody, err)
	}
	_, err = r.Queries.Fit(t.Context(), ada, last.Workload, last.GPUModel)
	if !errors.Is(err, query.ErrForbidden) {
		t.Errorf("to a user: %v", err)
	}
}

func TestAnOverviewAddsUpDaysAndShowsWhatItsCallerMaySee(t *testing.T) {
	r := withJobs(t)
	r.flush()
	for _, c := range []struct {
		who  query.Caller
		jobs int
	}{{ada, 1}, {operator, 2}} {
		o, err := r.Queries.Overview(t.Context(), c.who)
		if err != nil || len(o.Jobs) != c.jobs || len(o.Decisions) != c.jobs {
			t.Fatalf("%s: %+v, %v", c.who.Name, o, err)
		}
		if len(o.Days) != epdapi.OverviewDays ||
			!o.Days[29].Day.Equal(r.clock.read().Truncate(24*time.Hour)) {
			t.Errorf("%d days to %s", len(o.Days), o.Days[len(o.Days)-1].Day)
		}
		runs, joules := int64(0), 0.0
		for _, d := range o.Days {
			runs, joules = runs+d.Runs, joules+d.GPUEnergyJ
		}
		months, used, now := o.Months, 0.0, r.clock.read()
		for i, h := range o.Hours {
			used += h.UsedW * min(3600, max(60, now.Sub(h.From).Seconds()))
			if i > 0 && h.From.Sub(o.Hours[i-1].From) != time.Hour {
				t.Errorf("an hour begins at %s", h.From)
			}
		}
		if len(o.Hours) != epdapi.OverviewHours || math.Abs(used-joules) > 1e-9*joules ||
			len(months) != 2 || months[0].Runs+months[1].Runs != 2 || now.Month() != months[0].Day.Month() {
			t.Errorf("%s: %g J by hour, want %g; %+v", c.who.Name, used, joules, months)
		}
		if runs != 2 || !(joules > 0) || len(o.States) != 1 ||
			o.States[0] != (epdapi.StateCount{State: record.Completed, Runs: 2}) {
			t.Errorf("%s: %d runs, %g J, %+v", c.who.Name, runs, joules, o.States)
		}
	}
}

func TestDecisionsOfAdviceSayWhatWouldHaveBeenSaved(t *testing.T) {
	r := newRig(t, nil)
	for id := range slurm.JobID(4) {
		r.run(id+1, memoryBound())
	}
	r.settings.Store(settings(t, mode(live.Advise)))
	r.job(9, nil)
	r.decide(ask(9))
	r.flush()
	list, err := r.Queries.Decisions(t.Context(), query.ForEPD(), string(live.Advise), 0, 10)
	if err != nil || len(list.Decisions) != 1 || list.Next != 0 {
		t.Fatalf("%+v, %v", list, err)
	}
	if d := list.Decisions[0]; d.Apply || d.Setting.Core == 0 || !(d.Would.Or(0) > 0) || d.Name != "train" ||
		d.User != "ada" {
		t.Errorf("%+v", d)
	}
	if own, err := r.Queries.Decisions(t.Context(), query.Caller{UID: 5, Name: "eve"}, "", 0, 10); err != nil ||
		len(own.Decisions) != 0 {
		t.Errorf("others' decisions: %+v, %v", own, err)
	}
}

// What was saved is computed for the first who asks, and shown to others.
func TestAnOverviewTellsOfWorkloadsToOperatorsAlone(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Settings.Live.HoldOut = 0.5 })
	for id := range slurm.JobID(40) {
		r.run(id+1, memoryBound())
	}
	r.flush()
	for _, c := range []struct {
		who   query.Caller
		tells bool
	}{{operator, true}, {ada, false}, {root, true}} {
		o, err := r.Queries.Overview(t.Context(), c.who)
		if err != nil || (len(o.Savings.ByWorkload) > 0) != c.tells {
			t.Errorf("%s: %+v, %v", c.who.Name, o.Savings.ByWorkload, err)
		}
	}
	s := newRig(t, func(o *Options) { o.Settings.Live.HoldOut = 0.5 })
	for id := range slurm.JobID(40) {
		s.run(id+1, memoryBound())
	}
	s.flush()
	if o, err := s.Queries.Overview(t.Context(), ada); err != nil || len(o.Savings.ByWorkload) > 0 {
		t.Errorf("a user who asks first: %+v, %v", o.Savings.ByWorkload, err)
	}
	if o, err := s.Queries.Overview(t.Context(), operator); err != nil || len(o.Savings.ByWorkload) == 0 ||
		o.Savings.ByWorkload[0].LastJob.Name != "train" {
		t.Errorf("an operator after a user: %+v, %v", o.Savings.ByWorkload, err)
	}
}

// They take long where there are very many workloads.
func TestAnOverviewShowsSavingsOfAMomentAgoAndNeverOldOnes(t *testing.T) {
	r := newRig(t, nil)
	treated := func() int64 {
		t.Helper()
		o, err := r.Queries.Overview(t.Context(), query.ForEPD())
		if err != nil {
			t.Fatal(err)
		}
		months := int64(0)
		for i := range o.Months {
			if saved := o.Months[i].Saved; saved != nil {
				months += saved.Treated
			}
		}
		if months != o.Savings.Treated {
			t.Errorf("%d runs were treated in the two months, want %d", months, o.Savings.Treated)
		}
		return o.Savings.Treated
	}
	runs := func(from slurm.JobID) {
		for id := from; id < from+4; id++ {
			r.run(id, memoryBound())
		}
	}
	runs(1) // until there is a model, and one with it
	first := treated()
	if first == 0 {
		t.Fatal("no run was treated")
	}
	now := r.clock.read()
	runs(5)
	back := r.clock.read().Sub(now)
	r.clock.move(-back + 10*time.Second)
	if got := treated(); got != first {
		t.Errorf("%d runs after 10 s, want the %d of before", got, first)
	}
	r.clock.move(time.Hour)
	if got := treated(); got != first+4 {
		t.Errorf("%d runs an hour later, want %d", got, first+4)
	}
}
