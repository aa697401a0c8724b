package control

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/liveplan"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

const planned = enforceAll + "explore = 0\n[live.plan]\nmode = \"enforce\"\npolicy = \"edl:0.8\"\n"

// plan puts a plan in force that has jobs at clocks on a V100.
func (r *rig) plan(clocks map[slurm.JobID]dvfsmodel.Setting) {
	now := r.clock.read()
	p := &live.Plan{Policy: "edl:0.8", At: now, Until: now.Add(time.Hour)}
	queued := make([]slurm.JobID, 0, len(clocks))
	for id, at := range clocks {
		queued = append(queued, id)
		p.Jobs = append(p.Jobs, live.PlannedJob{
			Job: uint32(id), Task: id.String(), User: "ada", Start: now, End: now.Add(time.Hour), NodeClass: "v100x4",
			GPUModel: "V100", GPUs: 1, Setting: at, Reason: "readjusted",
		})
	}
	r.Plan.Put(p, queued, 0.2)
}

// TestWhatPlansAreToldMayBeSetIsWhatADecisionTakes asks for each pair of clocks and each limit.
func TestWhatPlansAreToldMayBeSetIsWhatADecisionTakes(t *testing.T) {
	r := taught(t)
	r.under(strings.Replace(planned, "max_slowdown = 1.5", "max_slowdowns = {gpu = 1.02}", 1))
	id, taken, refused := slurm.JobID(100), 0, 0
	var most [5]int // clocks, by limit
	for i, limit := range []time.Duration{
		9 * time.Minute, 11 * time.Minute, 14 * time.Minute, time.Hour, time.Hour,
	} {
		q := &liveplan.ClockQuestion{
			Workload: r.key().Workload, GPUModel: "V100", Partition: "gpu", Limit: limit.Seconds(),
		}
		comment := ""
		if i == 4 {
			q.Slowdown, comment = 1.6, "epplan:slowdown=1.6"
		}
		admissible, ok := r.Foresight.PlanRules().Admissible(q)
		most[i] = len(admissible)
		if !ok || !slices.Contains(admissible, base) {
			t.Fatalf("%v, %v", admissible, ok)
		}
		for _, core := range ask(1).Clocks[0].Core {
			id++
			at := dvfsmodel.Setting{Core: core, Mem: 877}
			r.job(id, func(j *slurm.Job) {
				j.TimeLimit, j.Start, j.Comment = live.LimitOf(limit), r.clock.read(), comment
			})
			r.plan(map[slurm.JobID]dvfsmodel.Setting{id: at})
			d := r.decide(ask(id))
			follows := strings.HasPrefix(d.Reason, "by plan edl:0.8: ")
			if core == base.Core {
				continue // whether anything is sure to be in time isn't the plan's
			}
			if want := slices.Contains(admissible, at); follows != want || want && d.Core != core {
				t.Errorf("within %s at %s, admissible %v: %s", limit, at.Words(), want, d.Reason)
			}
			if follows {
				taken++
			} else {
				refused++
			}
		}
	}
	if taken == 0 || refused == 0 || most[4] <= most[3] {
		t.Errorf("%d taken, %d refused; clocks %v, want more where the user allows a longer run", taken, refused,
			most)
	}
}

func TestAllNodesOfARunHaveThePlansClocksThoughItIsMadeAnew(t *testing.T) {
	r := taught(t)
	r.under(planned)
	r.spread(100)
	r.plan(map[slurm.JobID]dvfsmodel.Setting{100: {Core: 1237, Mem: 877}})
	first := r.decide(onNode("n1"))
	if first.Core != 1237 || !first.Apply || first.Arm != live.ArmTreated {
		t.Fatalf("%+v", first)
	}
	r.plan(map[slurm.JobID]dvfsmodel.Setting{100: {Core: 945, Mem: 877}})
	same(t, "the second node", first, r.decide(onNode("n2")))
	r.Plan.Drop()
	same(t, "the third node", first, r.decide(onNode("n3")))
}

// heldOut reports whether plans are told that the lot holds a job out.
func (r *rig) heldOut(id slurm.JobID) bool {
	return r.Foresight.PlanRules().Arm(id, "V100") == live.ArmHeldOut
}

// TestJobsThatTheLotHoldsOutRunAsWithoutAPlan: those, and no others.
func TestJobsThatTheLotHoldsOutRunAsWithoutAPlan(t *testing.T) {
	r := taught(t)
	r.under(strings.Replace(planned, "hold_out = 0\n", "hold_out = 0.3\n", 1))
	heldOut := 0
	for id := slurm.JobID(100); id < 160; id++ {
		r.job(id, nil)
		r.plan(map[slurm.JobID]dvfsmodel.Setting{id: {Core: 1237, Mem: 877}})
		d := r.decide(ask(id))
		if d.HoldOut != r.heldOut(id) || d.HoldOut == (d.Core == 1237) ||
			d.HoldOut == strings.HasPrefix(d.Reason, "by plan") {
			t.Errorf("%+v", d)
		}
		if d.HoldOut {
			heldOut++
		}
	}
	if heldOut < 5 || heldOut > 35 {
		t.Errorf("%d of 60 are held out", heldOut)
	}
}

// TestWhereDefaultClocksAreTheBestTheLotLeavesJobsAtThem: no arm has such jobs, and the plan has other
// clocks for them.
func TestWhereDefaultClocksAreTheBestTheLotLeavesJobsAtThem(t *testing.T) {
	r := taught(t)
	r.under(strings.Replace(planned, "hold_out = 0\n", "hold_out = 0.3\nmin_gain = 0\n", 1) + bestAtDefault)
	heldOut := 0
	for id := slurm.JobID(100); id < 140; id++ {
		r.job(id, nil)
		r.plan(map[slurm.JobID]dvfsmodel.Setting{id: {Core: 1237, Mem: 877}})
		d, held := r.decide(ask(id)), r.heldOut(id)
		if d.Arm != live.ArmExcluded || held == (d.Core == 1237) {
			t.Errorf("held out %v: %+v", held, d)
		}
		if held {
			heldOut++
		}
	}
	if heldOut == 0 {
		t.Error("none is held out")
	}
}

func TestAPlanThatCountsNoMoreLeavesTheClocksOfTheJobAlone(t *testing.T) {
	r := taught(t)
	r.under(planned)
	r.job(100, nil)
	alone := r.decide(ask(100))
	r.job(101, nil)
	r.plan(map[slurm.JobID]dvfsmodel.Setting{101: {Core: 1237, Mem: 877}})
	r.clock.move(2 * time.Hour)
	d := r.decide(ask(101))
	if d.Core != alone.Core || !strings.HasPrefix(d.Reason, alone.Reason) ||
		!strings.Contains(d.Reason, "(plan edl:0.8: it is stale: ") {
		t.Errorf("%s\nwant %s", d.Reason, alone.Reason)
	}
}

func TestWhatIsPlannedIsShownToWhomTheJobIs(t *testing.T) {
	r := taught(t)
	r.under(planned)
	r.job(100, func(j *slurm.Job) {
		j.State.Base, j.Allocated = slurm.Pending, nil
		j.Requested = slurm.TRES{"gres/gpu": 1}
	})
	r.plan(map[slurm.JobID]dvfsmodel.Setting{100: {Core: 1237, Mem: 877}})
	for name, seen := range map[string]bool{"ada": true, "bob": false} {
		who := query.Caller{UID: 1000, Name: name}
		p := r.Queries.Plan(t.Context(), who)
		if (len(p.Jobs) == 1) != seen {
			t.Errorf("%s sees %+v", name, p)
		}
		v, err := r.Queries.Job(t.Context(), who, 100)
		if (err == nil) != seen {
			t.Errorf("%s: %v", name, err)
		}
		if seen && (v.Plan == nil || v.Plan.Mode != "enforce" || v.Plan.Planned.Core != 1237) {
			t.Errorf("%+v", v.Plan)
		}
	}
}

func TestRunTimesAreThoseAtTheClocksThatWereDecided(t *testing.T) {
	r := taught(t)
	r.under(planned)
	r.job(100, nil)
	r.plan(map[slurm.JobID]dvfsmodel.Setting{100: {Core: 802, Mem: 877}})
	d := r.decide(ask(100))
	if got := r.Foresight.PlanRules().RunTimes()[100]; got != d.Predicted.Or(0) || d.Core != 802 {
		t.Errorf("%v s, want %v at %s", got, d.Predicted, d.Words())
	}
}

// TestWhatPlansAreToldOfTheConstantArmIsWhatADecisionTakes: who is in it, and which clocks it gets.
func TestWhatPlansAreToldOfTheConstantArmIsWhatADecisionTakes(t *testing.T) {
	r := taught(t)
	arm := "hold_out = 0.2\nconstant_arm = 0.3\nconstant_clocks = {V100 = 802}\n"
	r.under(strings.Replace(planned, "hold_out = 0\n", arm, 1))
	rules, constant, unable := r.Foresight.PlanRules(), 0, 0
	for id := slurm.JobID(100); id < 200; id++ {
		limit := []time.Duration{12 * time.Minute, time.Hour}[id%2]
		r.job(id, func(j *slurm.Job) { j.TimeLimit, j.Start = live.LimitOf(limit), r.clock.read() })
		r.plan(map[slurm.JobID]dvfsmodel.Setting{id: {Core: 1237, Mem: 877}})
		d := r.decide(ask(id))
		arm := rules.Arm(id, "V100")
		byPlan := strings.HasPrefix(d.Reason, "by plan")
		if d.Arm != arm || (arm == live.ArmTreated) != byPlan && limit == time.Hour {
			t.Errorf("told %s, decided %+v", arm, d)
		}
		if arm != live.ArmConstant {
			continue
		}
		clocks := rules.Constant(&liveplan.ClockQuestion{
			Workload: r.key().Workload, GPUModel: "V100", Limit: limit.Seconds(),
		})
		if clocks.Core != d.Core {
			t.Errorf("told %s within %s, decided %+v", clocks.Words(), limit, d)
		}
		if constant++; clocks == (dvfsmodel.Setting{}) {
			unable++
		}
	}
	if constant == 0 || unable == 0 || unable == constant {
		t.Errorf("%d in the constant arm, %d not at its clocks", constant, unable)
	}
}
