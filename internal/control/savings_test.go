package control

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// energies records a completed run for each energy.
func (r *rig) energies(workload string, arm live.Arm, joules ...float64) {
	r.t.Helper()
	for i, j := range joules {
		r.ended(&record.Outcome{
			RunID: fmt.Sprintf("%s-%s-%d", workload, arm, i), Workload: workload, GPUModel: "V100", Arm: arm,
			ExitState: record.Completed, GPUEnergyJ: live.Known(j),
		})
	}
}

func (r *rig) ended(o *record.Outcome) {
	r.t.Helper()
	o.Ended = start
	if _, err := r.Record(r.t.Context(), o); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) savings() epdapi.Savings {
	r.t.Helper()
	var s epdapi.Savings
	if status := r.callAs(&ada, http.MethodGet, "/v1/savings", "", &s); status != http.StatusOK {
		r.t.Fatal(status)
	}
	return s
}

// What a saving costs is stated beside it: each workload's treated runs take longer than those held
// out by a part of its own.
func TestSavingsSayHowMuchLongerJobsTook(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Settings = settings(t, "[live]\nmax_slowdown = 1.25\n") })
	for workload, longer := range map[string]float64{"a": 1.2, "b": 1} {
		for arm, times := range map[live.Arm][]float64{
			live.ArmHeldOut: {98, 100, 102}, live.ArmTreated: {99, 99, 101, 101}, live.ArmConstant: {105, 109, 116},
		} {
			for i, s := range times {
				if arm == live.ArmTreated {
					s *= longer
				}
				r.ended(&record.Outcome{
					RunID: fmt.Sprintf("%s-%s-%d", workload, arm, i), Workload: workload, GPUModel: "V100", Arm: arm,
					ExitState: record.Completed, GPUEnergyJ: live.Known(8000), TimeS: live.Known(s),
				})
			}
		}
	}
	s := r.savings()
	if l := s.Time; l.Runs != 8 || l.Against != 6 || math.Abs(l.LongerS-4*20) > 1e-9 ||
		math.Abs(l.BaselineS-800) > 1e-9 || !(l.LowS > 60 && l.HighS < 100) || s.MaxSlowdown != 1.25 {
		t.Errorf("%+v, max_slowdown %v, want 80 s longer than 800 s", l, s.MaxSlowdown)
	}
	// 110 s at constant clocks: a's treated runs took 10 s more than that, b's 10 s less.
	if l := s.Constant.AddedTime; l.Runs != 8 || l.Against != 6 || math.Abs(l.LongerS) > 1e-9 ||
		math.Abs(l.BaselineS-880) > 1e-9 || !(l.LowS < 0 && l.HighS > 0) {
		t.Errorf("%+v, want as long as 880 s", l)
	}
	if got := s.Time.Words("held out"); !strings.HasPrefix(got, "10.0 % longer than held out; between") {
		t.Error(got)
	}
}

func TestSavingsSayHowManyHeldOutRunsAreMissing(t *testing.T) {
	r := newRig(t, func(o *Options) {
		o.Settings = settings(t, "[factors]\ncost_per_kwh = 0.3\ncurrency = \"EUR\"\n"+
			"carbon_g_per_kwh = 400\npue = 1.2\n")
	})
	if s := r.savings(); s.Treated != 0 || s.GPU.Needed != 0 || s.GPU.IsCertain() {
		t.Errorf("nothing: %+v", s)
	}
	r.energies("a", live.ArmTreated, 80, 82, 84)
	if s := r.savings(); s.Treated != 3 || s.Alone != 1 || s.GPU.Runs != 0 || s.GPU.Needed != 1 {
		t.Errorf("nothing held out: %+v", s)
	}
	r.energies("b", live.ArmTreated, 10)
	r.energies("a", live.ArmHeldOut, 70, 120)
	wide := r.savings()
	if wide.GPU.Runs != 3 || wide.GPU.Against != 2 || wide.GPU.SavedJ != 39 || wide.GPU.IsCertain() ||
		wide.GPU.Needed < 1 ||
		wide.Workloads != 1 || wide.Alone != 1 {
		t.Errorf("too few: %+v", wide)
	}
	if f := wide.Factors; f.CostPerKWh != 0.3 || f.Currency != "EUR" || f.PUE != 1.2 {
		t.Errorf("factors %+v", f)
	}
	if p := wide.Factors.FootprintOf(3.6e6); math.Abs(p.KWh-1.2) > 1e-12 || math.Abs(p.Cost-0.36) > 1e-12 ||
		math.Abs(p.Carbon-480) > 1e-9 || p.Water != 0 {
		t.Errorf("a kilowatt-hour costs %+v", p)
	}
	r.energies("c", live.ArmTreated, 50, 50.1, 50.2, 50.1)
	r.energies("c", live.ArmHeldOut, 400, 400.1, 400.2)
	if s := r.savings(); s.Workloads != 2 || !s.GPU.IsCertain() || s.GPU.Needed != 0 {
		t.Errorf("enough: %+v", s)
	}
}

// What the models believed stands beside what was measured, for the treated runs
// that a model predicted.
func TestTheModelledSavingIsWhatWasPredictedAtDefaultClocksLessWhatWasUsed(t *testing.T) {
	r := newRig(t, nil)
	for id := range slurm.JobID(8) {
		r.run(id+1, memoryBound())
	}
	r.job(100, nil)
	d := r.decide(ask(100))
	believed, known := d.DefaultJ.Get()
	if chosen := d.EnergyJ.Or(0); d.Arm != live.ArmTreated || !known || believed <= chosen {
		t.Fatalf("predicted %v J at default clocks, %v J at the chosen ones: %+v", believed, chosen, d)
	}
	o := r.ran(d, ask(100).RunID, memoryBound())
	before := r.savings().Modelled
	r.record(o, store.Stored)
	s := r.savings()
	got := epdapi.ModelledUse{
		Runs: s.Modelled.Runs - before.Runs, DefaultJ: s.Modelled.DefaultJ - before.DefaultJ,
		UsedJ: s.Modelled.UsedJ - before.UsedJ,
	}
	used := o.GPUEnergyJ.Or(0)
	if got.Runs != 1 || math.Abs(got.DefaultJ-believed) > 1e-6*believed ||
		math.Abs(got.UsedJ-used) > 1e-6*used || s.Modelled.Runs != s.Treated {
		t.Errorf("modelled %+v, want %v J less %v J; %+v", got, believed, used, s)
	}
	if saved := s.Modelled.SavedJ(); saved <= 0 || saved != s.Modelled.DefaultJ-s.Modelled.UsedJ {
		t.Errorf("saved %v J", saved)
	}
}

// While records can't be written, treated runs are at default clocks and in no
// arm; held-out ones of that time would be compared with others.
func TestTroubleWithRecordsTakesHeldOutRunsOutOfTheComparison(t *testing.T) {
	r := newRig(t, func(o *Options) {
		o.StoreWait = 10 * time.Millisecond
		o.Settings = settings(t, "[live]\nmode = \"enforce\"\nhold_out = 1\nmax_slowdown = 1.5\n")
	})
	for id := range slurm.JobID(6) {
		r.run(id+1, memoryBound())
	}
	r.job(100, nil)
	if d := r.decide(ask(100)); d.Arm != live.ArmHeldOut || !d.HoldOut {
		t.Fatalf("before the trouble: %+v", d)
	}
	r.flush()
	unlock := r.lock()
	defer unlock()
	for id, until := slurm.JobID(101), time.Now().Add(time.Minute); ; id++ {
		r.job(id, nil)
		d := r.decide(ask(id))
		if d.Arm == live.ArmExcluded && !d.HoldOut && !d.Apply {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("still %+v", d)
		}
	}
}

func TestJobsThatDontCompleteAreCountedByArm(t *testing.T) {
	r := newRig(t, nil)
	for i := range 40 {
		for _, arm := range []live.Arm{live.ArmTreated, live.ArmHeldOut} {
			o := &record.Outcome{
				RunID: fmt.Sprintf("%s-%d", arm, i), Workload: "a", GPUModel: "V100", Arm: arm,
				ExitState: record.Completed,
			}
			if arm == live.ArmTreated && i < 10 {
				o.ExitState = string(slurm.Timeout)
			}
			r.ended(o)
		}
	}
	s := r.savings()
	if s.TreatedEnded != (epdapi.EndingCounts{Ended: 40, Completed: 30}) ||
		s.HeldOutEnded != (epdapi.EndingCounts{Ended: 40, Completed: 40}) {
		t.Errorf("%+v, %+v", s.TreatedEnded, s.HeldOutEnded)
	}
	if !s.TreatedCompleteLess() {
		t.Error("30 of 40 against 40 of 40 is no chance")
	}
	s.TreatedEnded.Completed = 38
	if s.TreatedCompleteLess() {
		t.Error("38 of 40 against 40 of 40 may be chance")
	}
}

func TestSavingsHaveNoTextOfUsers(t *testing.T) {
	r := newRig(t, nil)
	r.energies("evil\x1b[2J", live.ArmTreated, 1, 2)
	if text := string(must(r.savingsText())); strings.Contains(text, "evil") {
		t.Error(text)
	}
}

func (r *rig) savingsText() ([]byte, error) {
	s, err := r.Queries.Savings(r.t.Context(), query.ForEPD(), start.AddDate(-1, 0, 0), time.Time{})
	return fmt.Appendf(nil, "%+v", s), err
}

func TestOnlyOperatorsAreToldOfSavingsByWorkload(t *testing.T) {
	r := newRig(t, nil)
	r.energies("small", live.ArmTreated, 8, 9)
	r.energies("small", live.ArmHeldOut, 10, 11)
	r.energies("large", live.ArmTreated, 50, 51)
	r.energies("large", live.ArmHeldOut, 70, 71)
	r.energies("alone", live.ArmTreated, 1e6)
	if s := r.savings(); len(s.ByWorkload) != 0 || s.Workloads != 2 {
		t.Errorf("a user is told of %+v", s.ByWorkload)
	}
	var s epdapi.Savings
	if status := r.callAs(&operator, http.MethodGet, "/v1/savings", "", &s); status != http.StatusOK ||
		len(s.ByWorkload) != 2 {
		t.Fatalf("status %d, %+v", status, s.ByWorkload)
	}
	var before epdapi.Savings
	until := "/v1/savings?until=" + start.AddDate(-1, 0, 0).Format(time.RFC3339)
	if status := r.callAs(&operator, http.MethodGet, until, "", &before); status != http.StatusOK ||
		before.Treated != 0 || s.Treated == 0 || !before.Until.Equal(start.AddDate(-1, 0, 0)) {
		t.Errorf("a year before: status %d, %d runs of %d", status, before.Treated, s.Treated)
	}
	status := r.callAs(&operator, http.MethodGet, "/v1/savings?until=soon", "", nil)
	if status != http.StatusBadRequest {
		t.Errorf("until=soon: status %d", status)
	}
	large, small := s.ByWorkload[0], s.ByWorkload[1]
	if large.Workload != "large" || large.SavedJ != 40 || large.Runs != 2 || small.Workload != "small" ||
		small.SavedJ != 4 {
		t.Errorf("by workload %+v", s.ByWorkload)
	}
}

// The constant arm is compared with the other two, and what it used is in no other
// figure.
func TestSavingsCompareTheConstantArmWithBothOthers(t *testing.T) {
	r := newRig(t, nil)
	r.energies("a", live.ArmTreated, 80, 80.5, 81, 80.5)
	r.energies("a", live.ArmHeldOut, 100, 100.1, 100.2)
	r.energies("b", live.ArmTreated, 10)
	two := r.savings()
	if two.Constant != nil || strings.Contains(string(must(json.Marshal(&two))), "constant") {
		t.Errorf("without such an arm: %+v", two.Constant)
	}
	r.energies("a", live.ArmConstant, 90, 90.3, 90.6)
	r.energies("b", live.ArmConstant, 1e6, 2e6)
	r.ended(&record.Outcome{
		RunID: "failed", Workload: "a", GPUModel: "V100", Arm: live.ArmConstant, ExitState: "FAILED",
		GPUEnergyJ: live.Known(1),
	})
	three := r.savings()
	c := three.Constant
	if c == nil || c.Part != 0 || c.Runs != 5 || c.Ended != (epdapi.EndingCounts{Ended: 6, Completed: 5}) {
		t.Fatalf("%+v", c)
	}
	three.Constant = nil
	if text, want := must(json.Marshal(&three)), must(json.Marshal(&two)); !bytes.Equal(text, want) {
		t.Errorf("%s\nbeside a constant arm, without one\n%s", text, want)
	}
	if s := &c.GPU; s.Runs != 3 || s.Against != 3 || math.Abs(s.SavedJ-3*9.8) > 1e-9 || !s.IsCertain() {
		t.Errorf("constant over held out: %+v, want 3 × 9.8 J", s)
	}
	saved := 4*(270.9/3) - 322 + 1*1.5e6 - 10 // of a and b
	if s := &c.AddedGPU; s.Runs != 5 || s.Against != 5 || math.Abs(s.SavedJ-saved) > 1e-6 ||
		s.Saving().SavedJ != s.SavedJ {
		t.Errorf("treated over constant: %+v, want %v J", s, saved)
	}
	if c.AddedNode.Runs != 0 || c.Node.Runs != 0 {
		t.Errorf("of nodes nothing was measured: %+v", c)
	}
	if err := r.Reload(func() (*Settings, error) { return settings(t, constantly("1237")), nil }); err !=
		nil {
		t.Fatal(err)
	}
	if c := r.savings().Constant; c == nil || c.Part != 1 {
		t.Errorf("with such an arm: %+v", c)
	}
}

func TestUnlikeEndingsInTheConstantArmAreToldFromChance(t *testing.T) {
	s := epdapi.Savings{
		TreatedEnded: epdapi.EndingCounts{Ended: 40, Completed: 40},
		HeldOutEnded: epdapi.EndingCounts{Ended: 40, Completed: 40},
	}
	if s.ConstantCompletesUnlike() {
		t.Error("there is no constant arm")
	}
	for completed, want := range map[int64]bool{40: false, 38: false, 30: true} {
		s.Constant = &epdapi.ConstantArm{Ended: epdapi.EndingCounts{Ended: 40, Completed: completed}}
		if s.ConstantCompletesUnlike() != want || s.TreatedCompleteLess() {
			t.Errorf("%d of 40 against 40 of 40: %t", completed, !want)
		}
	}
	s.TreatedEnded.Completed, s.Constant.Ended.Completed = 30, 40
	if !s.ConstantCompletesUnlike() {
		t.Error("fewer treated ones")
	}
}

// Groups are measured by the same experiment as the whole: where a group is all there is of a stratum,
// they say the same, and runs of the groups add up to those of the whole.
func TestSavingsOfGroupsAreThoseOfTheWholeOrNotStated(t *testing.T) {
	r := newRig(t, nil)
	r.userEnergies("ada", live.ArmTreated, 100, 101, 102, 99, 98, 100)
	r.userEnergies("ada", live.ArmHeldOut, 130, 131, 129, 128, 132)
	r.userEnergies("bob", live.ArmTreated, 50, 51, 49, 50, 50)
	r.userEnergies("bob", live.ArmHeldOut, 90, 91, 89, 90) // one fewer than are needed
	r.userEnergies("eve", live.ArmExcluded, 7)
	ask := func(who query.Caller, by string) (*epdapi.Usage, map[string]*epdapi.GroupSaving) {
		u, err := r.Queries.Usage(t.Context(), who, time.Time{}, time.Time{}, by, false)
		if err != nil {
			t.Fatal(err)
		}
		groups := map[string]*epdapi.GroupSaving{}
		for i := range u.Groups {
			groups[u.Groups[i].Key] = u.Groups[i].Measured
		}
		return &u, groups
	}
	u, users := ask(operator, "user")
	if a := users["ada"]; a.Treated != 6 || a.HeldOut != 5 || math.Abs(a.GPU.SavedJ-6*30) > 1e-9 ||
		!a.GPU.IsCertain() || math.Abs(a.Time.LongerS-6*10) > 1e-9 || a.Node.Runs != 0 {
		t.Errorf("ada: %+v", a)
	}
	if b := *users["bob"]; b != (epdapi.GroupSaving{Treated: 5, HeldOut: 4}) {
		t.Errorf("bob has figures from 4 held-out runs: %+v", b)
	}
	if users["eve"] != nil {
		t.Errorf("eve, whose run is in no group: %+v", users["eve"])
	}
	for _, by := range record.Groupings {
		u, _ := ask(operator, by)
		var sum epdapi.UsageSum
		var treated, heldOut int64
		for i := range u.Groups {
			sum.Add(&u.Groups[i])
			if m := u.Groups[i].Measured; m != nil {
				treated, heldOut = treated+m.Treated, heldOut+m.HeldOut
			}
		}
		if sum.Runs != u.Total.Runs || math.Abs(sum.EnergyJ-u.Total.EnergyJ) > 1e-9 ||
			treated != u.Savings.Treated || heldOut != u.Savings.HeldOut {
			t.Errorf("by %s: %+v, %d treated, %d held out of %+v", by, sum, treated, heldOut, u)
		}
	}
	for by, key := range map[string]string{"workload": "w", "gpu": "V100", "partition": "gpu"} { // one of each
		u, groups := ask(operator, by)
		if m := groups[key]; m.GPU != u.Savings.GPU || m.Time != u.Savings.Time || m.GPU.Runs != 11 {
			t.Errorf("by %s: %+v, the whole %+v", by, m, u.Savings.GPU)
		}
	}
	own, mine := ask(ada, "user")
	if len(own.Groups) != 1 || mine["ada"] == nil || *mine["ada"] != *users["ada"] {
		t.Errorf("ada is told %+v, an operator %+v", own.Groups, u.Groups)
	}
}

// Parts of a period say what only sums are kept of, each once.
func TestPrunedRunsAreInOnePartOfAPeriod(t *testing.T) {
	r := newRig(t, nil)
	r.energies("a", live.ArmTreated, 10, 20)
	if _, err := r.store.Prune(t.Context(), start.AddDate(1, 0, 0)); err != nil {
		t.Fatal(err)
	}
	r.clock.move(time.Hour)
	r.userEnergies("ada", live.ArmTreated, 5)
	for _, ago := range []int{1, 12} { // months: parts are days, or months
		since := start.AddDate(0, -ago, 0)
		u, err := r.Queries.Usage(t.Context(), operator, since, start.AddDate(0, 1, 0), "user", false)
		if err != nil || u.Pruned == nil || u.Pruned.EnergyJ != 30 || u.Total.EnergyJ != 35 {
			t.Fatalf("%+v, %v", u, err)
		}
		sum := 0.
		for i := range u.Over {
			sum += u.Over[i].PrunedJ + u.Over[i].EnergyJ
		}
		t.Logf("%d parts", len(u.Over))
		if sum != u.Total.EnergyJ {
			t.Errorf("since %v: the parts have %v J, all %v J", since, sum, u.Total.EnergyJ)
		}
	}
}

// userEnergies records jobs of a user that used so much: at chosen clocks in 110 s, otherwise in 100 s.
func (r *rig) userEnergies(user string, arm live.Arm, joules ...float64) {
	r.t.Helper()
	seconds := 100.
	if arm == live.ArmTreated {
		seconds = 110
	}
	for i, j := range joules {
		job := &record.Job{
			Cluster: "alpha", ID: int64(1000 + r.clock.read().Minute() + i), Submitted: r.clock.read(), User: user,
			Account: "of " + user, Partition: "gpu", GPUs: 1, Nodes: 1,
		}
		if err := r.store.PutJob(r.t.Context(), job); err != nil {
			r.t.Fatal(err)
		}
		r.ended(&record.Outcome{
			RunID: fmt.Sprintf("%s-%s-%d", user, arm, i), JobID: job.ID, Submitted: job.Submitted, Workload: "w",
			GPUModel: "V100", Arm: arm, ExitState: record.Completed, GPUEnergyJ: live.Known(j),
			TimeS: live.Known(seconds),
		})
	}
	r.clock.move(time.Minute)
}
