package decide

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/liveplan"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// planModes are configurations with and without a plan that counts.
const (
	planEnforced = "[live.plan]\nmode = \"enforce\"\n"
	planAdvised  = "[live.plan]\nmode = \"advise\"\n"
	planObserved = "[live.plan]\nmode = \"observe\"\n"
)

// drawAdvice returns what a plan might have for a job: clocks that its GPU has or not, default ones, ones of
// another GPU, or nothing.
func drawAdvice(rng *rand.Rand, a *alike) liveplan.Advice {
	planned := live.PlannedJob{GPUModel: a.profile.Name, Reason: "as planned"}
	switch rng.IntN(8) {
	case 0:
		return liveplan.Advice{}
	case 1:
		return liveplan.Advice{Policy: "edl", Why: "it is stale: it is old"}
	case 2:
		planned.GPUModel = "H100"
	case 3: // default clocks
	case 4:
		planned.Setting = dvfsmodel.Setting{Core: dvfsmodel.MHz(rng.IntN(3000)), Mem: dvfsmodel.MHz(rng.IntN(9000))}
	default:
		planned.Setting = drawPair(rng, a.profile.Pairs())
	}
	return liveplan.Advice{Policy: "edl", Job: &planned}
}

// TestAPlanOnlyChoosesAmongWhatAJobMayHave draws jobs, rules and plans, and holds each decision against
// the one without a plan and against the rules, once more.
func TestAPlanOnlyChoosesAmongWhatAJobMayHave(t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 5))
	from := newPool(t, rng, 40)
	var seen planSeen
	for range cases(4000) {
		a := from.draw(rng)
		plan := drawAdvice(rng, a)
		alone, planned := a.chooser(t, a.configuration()), a.chooser(t, a.configuration()+planEnforced)
		planned.planned = func() liveplan.Advice { return plan }
		wishes := slurm.Wishes{Deadline: alone.decision.Wish.Deadline, Off: rng.IntN(12) == 0}
		if rng.IntN(12) == 0 {
			wishes.CoreMHz, wishes.MemoryMHz = int(a.profile.Default.Core), int(a.profile.Default.Mem)
		}
		alone.choose(&wishes)
		planned.choose(&wishes)
		a.keepsRules(t, planned, wishes.HasFixedClocks())
		if planned.decision.Arm != alone.decision.Arm {
			t.Fatalf("the arm is %s, without a plan %s: %v", planned.decision.Arm, alone.decision.Arm, a)
		}
		if wishes.Off || wishes.HasFixedClocks() {
			plan.Policy = ""
		}
		seen.compare(t, planned, alone.decision, &plan)
	}
	t.Logf("%+v", seen)
	if seen.followed == 0 || seen.near == 0 || seen.left == 0 {
		t.Error("some case never came")
	}
}

// setting returns the clocks of a decision, the default ones by their numbers.
func (a *alike) setting(d *live.Decision) dvfsmodel.Setting {
	return dvfsmodel.Setting{
		Core: cmp.Or(d.Core, a.profile.Default.Core), Mem: cmp.Or(d.Mem, a.profile.Default.Mem),
	}
}

// keepsRules reports clocks that a job may not have, by the rules once more.
func (a *alike) keepsRules(t *testing.T, ch *chooser, fixed bool) {
	t.Helper()
	d := ch.decision
	at := a.setting(d)
	isDefault := at == a.profile.Default
	if !isDefault && !slices.Contains(ch.table.Allowed, at) {
		t.Fatalf("%v isn't allowed: %v", at, a)
	}
	if d.Apply == isDefault && !fixed {
		t.Fatalf("%v is set: %v (%s)", at, d.Apply, d.Reason)
	}
	if why := a.careless(at); why != "" && !isDefault {
		t.Fatalf("%v: %s: %v (%s)", at, why, a, d.Reason)
	}
}

// planSeen counts what became of plans.
type planSeen struct{ followed, near, left int }

// compare holds a decision with a plan against the one without.
func (s *planSeen) compare(t *testing.T, ch *chooser, before *live.Decision, plan *liveplan.Advice) {
	t.Helper()
	d := ch.decision
	same := d.Setting == before.Setting && d.Apply == before.Apply && d.EnergyJ == before.EnergyJ &&
		d.Predicted == before.Predicted
	switch {
	case plan.Policy == "":
		if !same || d.Reason != before.Reason {
			t.Fatalf("%+v, without a plan %+v", d, before)
		}
	case !strings.HasPrefix(d.Reason, "by plan edl"):
		s.left++
		if !same || !strings.HasPrefix(d.Reason, before.Reason) || !strings.Contains(d.Reason, "(plan edl: ") {
			t.Fatalf("%q, without a plan %q", d.Reason, before.Reason)
		}
	case strings.Contains(d.Reason, ", the nearest to "):
		s.near++
		wanted := plannedClocks(plan.Job, &ch.safe.Standard)
		if at := ch.safe.At(wanted.Core, wanted.Mem); d.Predicted.Or(0) > at.Time*(1+1e-9) {
			t.Fatalf("%v s, where the plan has it for %v s: %s", d.Predicted, at.Time, d.Reason)
		}
	default:
		s.followed++
		standard := &ch.safe.Standard
		at := dvfsmodel.Setting{Core: cmp.Or(d.Core, standard.Core), Mem: cmp.Or(d.Mem, standard.Mem)}
		if at != plannedClocks(plan.Job, standard) {
			t.Fatalf("%v, want %v: %s", at, plan.Job.Words(), d.Reason)
		}
	}
}

// TestAPlanThatMayNotActChangesNoDecision: off and observed to the byte; advised but for a word on what
// the plan would have.
func TestAPlanThatMayNotActChangesNoDecision(t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 6))
	from := newPool(t, rng, 20)
	for range cases(500) {
		a := from.draw(rng)
		plan := drawAdvice(rng, a)
		decided := func(more string) live.Decision {
			ch := a.chooser(t, a.configuration()+more)
			ch.planned = func() liveplan.Advice { return plan }
			ch.choose(&slurm.Wishes{Deadline: ch.decision.Wish.Deadline})
			return *ch.decision
		}
		before, err := json.Marshal(decided(""))
		if err != nil {
			t.Fatal(err)
		}
		observed, err := json.Marshal(decided(planObserved))
		if err != nil || !bytes.Equal(before, observed) {
			t.Fatalf("%s\nwant %s", observed, before)
		}
		advised, want := decided(planAdvised), decided("")
		if !strings.HasPrefix(advised.Reason, want.Reason) {
			t.Fatalf("%q, want %q and more", advised.Reason, want.Reason)
		}
		advised.Reason = want.Reason
		if got, err := json.Marshal(advised); err != nil || !bytes.Equal(before, got) {
			t.Fatalf("%s\nwant %s", got, before)
		}
	}
}

func TestTheLotLeavesJobsOutOfThePlan(t *testing.T) {
	p := armShares{holdOut: live.Known(0.1)}
	if p.arm(0.05) != live.ArmHeldOut || p.arm(0.1) != live.ArmTreated || p.arm(0.99) != live.ArmTreated {
		t.Error("a tenth is held out")
	}
	p.constant = live.Known(0.2)
	if p.arm(0.05) != live.ArmHeldOut || p.arm(0.8) != live.ArmConstant || p.arm(0.79) != live.ArmTreated {
		t.Error("a fifth is at constant clocks")
	}
}

// A plan knows no power limits. Where they are chosen beside clocks, a job that has a plan's clocks has a
// limit of its own choice, under which it takes no longer than it would at them, or none.
func TestAJobAtAPlansClocksChoosesAPowerLimitThatMakesItNoSlower(t *testing.T) {
	rng := rand.New(rand.NewPCG(20, 79))
	from := newPool(t, rng, 40)
	limited, plain := 0, 0
	for range cases(3000) {
		c := knowingLimits(t, rng, from)
		plan := drawAdvice(rng, c.alike)
		decide := func(lines string) (*live.Decision, *chooser) {
			ch := c.chooser(t, c.configuration()+planEnforced+lines)
			ch.request.PowerLimit = c.limit
			ch.planned = func() liveplan.Advice { return plan }
			ch.choose(&slurm.Wishes{Deadline: ch.decision.Wish.Deadline})
			return ch.decision, ch
		}
		d, _ := decide(c.live)
		clocks, ch := decide("")
		if clocks.Cap != 0 {
			t.Fatalf("%v where no limit is chosen", clocks.Setting)
		}
		if !strings.HasPrefix(d.Reason, "by plan edl") {
			continue
		}
		if d.Cap == 0 {
			plain++
			if d.Setting != clocks.Setting || d.Reason != clocks.Reason {
				t.Fatalf("%+v, and %+v where no limit is chosen", d, clocks)
			}
			continue
		}
		limited++
		if why := c.carelessTogether(d); why != "" {
			t.Fatalf("%v: %s: %v", d.Setting, why, c)
		}
		at := c.setting(clocks)
		if pt := ch.safe.At(at.Core, at.Mem); d.Predicted.Or(0) > pt.Time*(1+1e-9) {
			t.Fatalf("%v takes %v s, at the plan's clocks %v s", d.Setting, d.Predicted, pt.Time)
		}
		if !strings.Contains(d.Reason, "by the job's own choice of a power limit") {
			t.Fatal(d.Reason)
		}
	}
	if limited < 20 || plain == 0 {
		t.Errorf("%d jobs at a plan's clocks under a limit, %d without", limited, plain)
	}
}

// A treated task of an array that a plan has as held out, as one lot was drawn for all of its tasks while
// they waited, is at clocks of its own choice.
func TestATaskIsTreatedWhateverThePlanHadItsArrayAs(t *testing.T) {
	from := newPool(t, rand.New(rand.NewPCG(19, 5)), 40)
	rng, slowed := rand.New(rand.NewPCG(20, 5)), 0
	for range 500 {
		a := from.draw(rng)
		plan := liveplan.Advice{Policy: "edl", Job: &live.PlannedJob{
			Job: 10, Task: "10_3", GPUModel: a.profile.Name, HeldOut: true, Reason: "default clocks",
		}}
		alone, planned := a.chooser(t, a.configuration()), a.chooser(t, a.configuration()+planEnforced)
		planned.planned = func() liveplan.Advice { return plan }
		wishes := slurm.Wishes{Deadline: alone.decision.Wish.Deadline}
		alone.choose(&wishes)
		planned.choose(&wishes)
		if alone.decision.Apply {
			slowed++
		}
		own, d := alone.decision, planned.decision
		if own.Apply != d.Apply || own.Setting != d.Setting || own.Cap != d.Cap {
			t.Errorf("%s, by itself %s: %s", d.Words(), own.Words(), d.Reason)
		}
	}
	if slowed == 0 {
		t.Error("no task is slowed down")
	}
}
