package control

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// constantly has all jobs at constant clocks that aren't held out.
func constantly(core string, more ...string) string {
	return "[live]\nmode = \"enforce\"\nexplore = 0\nhold_out = 0\nconstant_arm = 1\n" +
		"constant_clocks = {V100 = " + core + "}\n" + strings.Join(more, "\n") + "\n"
}

// knowing returns a rig that has a model of the workload "train".
func knowing(tb testing.TB, truth dvfsmodel.Params) *rig {
	tb.Helper()
	r := newRig(tb, nil)
	for id := range slurm.JobID(6) {
		r.run(id+1, truth)
	}
	return r
}

// under puts settings in force.
func (r *rig) under(text string) {
	r.t.Helper()
	if err := r.Reload(func() (*Settings, error) { return settings(r.t, text), nil }); err != nil {
		r.t.Fatal(err)
	}
}

// bestAtDefault has default clocks be the best ones.
const bestAtDefault = "[objective]\nname = \"time\"\n"

var drawCases = []struct {
	name    string
	text    string
	job     func(*slurm.Job)
	request func(*epdapi.DecideRequest)
	core    float64 // 0: default
	arm     live.Arm
	reason  string
}{
	{
		name: "at constant clocks", text: constantly("1237"), core: 1237, arm: live.ArmConstant,
		reason: "drawn at random to run at constant clocks, core 1237 MHz: ",
	},
	{
		name: "an alias, and the memory's clock", text: constantly("[1237, 877]"), core: 1237,
		arm: live.ArmConstant, reason: "core 1237 MHz, memory 877 MHz: ",
	},
	{
		name: "default clocks are the best", text: constantly("1237", bestAtDefault), core: 1237,
		arm: live.ArmConstant, reason: "drawn at random",
	},
	{
		name: "default clocks are the best, held out", text: strings.Replace(constantly("1237",
			bestAtDefault), "hold_out = 0\nconstant_arm = 1", "hold_out = 0.99\nconstant_arm = 0.01", 1),
		arm: live.ArmHeldOut, reason: "held out at random, to compare with constant clocks, core 1237 MHz",
	},
	{
		name: "default clocks are the best, treated", text: strings.Replace(constantly("1237", bestAtDefault),
			"constant_arm = 1", "constant_arm = 0.000001", 1),
		arm: live.ArmTreated, reason: "default clocks are the best ones",
	},
	{
		name: "no constant arm, default clocks are the best",
		text: strings.Replace(constantly("1237", bestAtDefault), "constant_arm = 1", "constant_arm = 0", 1),
		arm:  live.ArmExcluded, reason: "default clocks are the best ones",
	},
	{
		name: "default clocks are the constant ones", text: constantly("1380"), arm: live.ArmConstant,
		reason: "but these are the default ones: default clocks",
	},
	{
		name: "and the best", text: constantly("1380", bestAtDefault), arm: live.ArmExcluded,
		reason: "default clocks are the best ones",
	},
	{
		name: "the node hasn't got them", text: constantly("1237"), arm: live.ArmConstant,
		reason:  "but the GPU doesn't support them: default clocks",
		request: func(r *epdapi.DecideRequest) { r.Clocks[0].Core = []dvfsmodel.MHz{1380, 1087, 945, 802} },
	},
	{
		name: "the node hasn't got them, and its default clocks are the best", text: constantly("1237",
			bestAtDefault), arm: live.ArmExcluded, reason: "default clocks are the best ones",
		request: func(r *epdapi.DecideRequest) { r.Clocks[0].Core = []dvfsmodel.MHz{1380, 1087, 945, 802} },
	},
	{
		name: "by the node's own default clocks they are too high",
		text: constantly("1237", "max_core = 1.2"), arm: live.ArmConstant,
		reason:  "but they are outside what the administrator allows: default clocks",
		request: func(r *epdapi.DecideRequest) { r.Default.Core = 945 },
	},
	{
		name: "the limit forbids them", text: constantly("802"), arm: live.ArmConstant,
		reason: "but a run there isn't sure to end in time: default clocks",
		job:    func(j *slurm.Job) { j.TimeLimit = live.LimitOf(700 * time.Second) },
	},
	{
		name: "the deadline forbids them", text: constantly("802"), arm: live.ArmConstant,
		reason: "but a run there isn't sure to end in time: default clocks",
		job:    func(j *slurm.Job) { j.Comment = "epplan:deadline=+700s" },
	},
	{
		name: "the slowdown forbids them", text: constantly("802", "max_slowdown = 1.05"),
		arm: live.ArmConstant, reason: "but a run there isn't sure to end in time: default clocks",
	},
	{
		name: "no adaptation", text: constantly("1237", "[live.adapt]\nmode = \"on\""), core: 1237,
		arm: live.ArmConstant, reason: "drawn at random",
	},
	{
		name: "no probe", text: strings.Replace(constantly("1237"), "explore = 0", "explore = 1", 1),
		core: 1237, arm: live.ArmConstant, reason: "drawn at random",
	},
	{
		name: "another GPU model", text: strings.Replace(constantly("1237"), "V100 = 1237", "T4 = 1005", 1),
		core: -1, arm: live.ArmTreated, reason: "of the GPUs' energy",
	},
	{
		name: "observed", text: strings.Replace(constantly("1237"), "enforce", "observe", 1), core: -1,
		arm: live.ArmExcluded, reason: "only observed",
	},
	{
		name: "advised", text: strings.Replace(constantly("1237"), "enforce", "advise", 1), core: -1,
		arm: live.ArmExcluded, reason: "advice: ",
	},
	{
		name: "opt-out", text: constantly("1237"), job: func(j *slurm.Job) { j.Comment = "epplan:off" },
		arm: live.ArmExcluded, reason: "opted out",
	},
	{
		name: "own --gpu-freq", text: constantly("1237"), job: func(j *slurm.Job) { j.GPUFreq = "medium" },
		arm: live.ArmExcluded, reason: "hands off",
	},
	{
		name: "fixed", text: constantly("1237"), job: func(j *slurm.Job) { j.Comment = "epplan:fixed=945" },
		core: 945, arm: live.ArmExcluded, reason: "the user fixed",
	},
	{
		name: "shared", text: constantly("1237"), request: func(r *epdapi.DecideRequest) { r.Shared = true },
		arm: live.ArmExcluded, reason: "shared",
	},
	{
		name: "limit unknown", text: constantly("1237"), job: func(j *slurm.Job) {
			j.TimeLimit = live.Limit{}
		}, arm: live.ArmExcluded, reason: "limit isn't known",
	},
	{
		name: "no model", text: constantly("1237"), job: func(j *slurm.Job) { j.Name = "other" },
		arm: live.ArmExcluded, reason: "no model of this workload",
	},
	{
		name: "a limit too short for any clocks", text: constantly("1237"),
		job: func(j *slurm.Job) { j.TimeLimit = live.LimitOf(5 * time.Minute) },
		arm: live.ArmExcluded, reason: "no others are sure to end within the limit",
	},
}

func TestAJobOfTheConstantArmIsAtItsClocksOrAtDefaultOnes(t *testing.T) {
	r := knowing(t, memoryBound())
	id := slurm.JobID(100)
	for _, tc := range drawCases {
		t.Run(tc.name, func(t *testing.T) {
			r.under(tc.text)
			id++
			r.job(id, tc.job)
			request := ask(id)
			if tc.request != nil {
				tc.request(request)
			}
			d := r.decide(request)
			apply := d.Mode == live.Enforce && tc.core != 0
			if d.Apply != apply || d.Arm != tc.arm || !strings.Contains(d.Reason, tc.reason) ||
				d.HoldOut != (tc.arm == live.ArmHeldOut) || d.Adapt != nil {
				t.Errorf("apply %t, arm %s, reason %q, adapted %v; want %t, %s, %q", d.Apply, d.Arm, d.Reason,
					d.Adapt, apply, tc.arm, tc.reason)
			}
			wantCore(t, &d, tc.core)
			if tc.arm == live.ArmConstant && d.DefaultJ == (live.Number{}) ||
				d.Core == 0 && tc.arm != live.ArmExcluded && d.EnergyJ != d.DefaultJ {
				t.Errorf("predicted %v J, %v J at default clocks", d.EnergyJ, d.DefaultJ)
			}
		})
	}
}

// arms decides about jobs in an order.
func (r *rig) arms(ids []slurm.JobID) map[slurm.JobID]live.Arm {
	all := make(map[slurm.JobID]live.Arm, len(ids))
	for _, id := range ids {
		r.job(id, nil)
		all[id] = r.decide(ask(id)).Arm
	}
	return all
}

func TestOneLotPutsEachJobIntoOneOfThreeArms(t *testing.T) {
	const jobs, holdOut, constant = 4000, 0.1, 0.2
	ids := make([]slurm.JobID, jobs)
	for i := range ids {
		ids[i] = slurm.JobID(100 + i)
	}
	text := func(constant float64) string {
		return fmt.Sprintf("[live]\nmode = \"enforce\"\nhold_out = %v\nconstant_arm = %v\n"+
			"constant_clocks = {V100 = 1237}\n", holdOut, constant)
	}
	r := knowing(t, memoryBound())
	r.under(text(constant))
	arms := r.arms(ids)
	n := make(map[live.Arm]float64)
	for _, arm := range arms {
		n[arm]++
	}
	for arm, want := range map[live.Arm]float64{
		live.ArmHeldOut: holdOut, live.ArmConstant: constant,
		live.ArmTreated: 1 - holdOut - constant,
	} {
		if part, four := n[arm]/jobs, 4*math.Sqrt(want*(1-want)/jobs); math.Abs(part-want) > four {
			t.Errorf("%s: %.3f of the jobs, want %.3f ± %.3f", arm, part, want, four)
		}
	}

	// In another order, under another hold-out or without a constant arm: only those
	// change their arm whom another part is of.
	other := knowing(t, memoryBound())
	other.under(text(constant))
	some := slices.Clone(ids[:500])
	slices.Reverse(some)
	for id, arm := range other.arms(some) {
		if arm != arms[id] {
			t.Fatalf("job %d is %s, asked in another order %s", id, arms[id], arm)
		}
	}
	without := knowing(t, memoryBound())
	without.under(text(0))
	for id, arm := range without.arms(some) {
		if (arm == live.ArmHeldOut) != (arms[id] == live.ArmHeldOut) || arm == live.ArmConstant {
			t.Fatalf("job %d is %s, without a constant arm %s", id, arms[id], arm)
		}
	}
}

// A job that runs again, on an epd that was started anew or not, stays in its arm.
func TestAJobThatRunsAgainStaysInItsArm(t *testing.T) {
	const text = "[live]\nmode = \"enforce\"\nhold_out = 0.3\nconstant_arm = 0.3\n" +
		"constant_clocks = {V100 = 1237}\n"
	r := knowing(t, memoryBound())
	r.under(text)
	ids := make([]slurm.JobID, 60)
	for i := range ids {
		ids[i] = slurm.JobID(100 + i)
	}
	arms := r.arms(ids)
	r.flush()
	second := rigAt(t, r.path, r.clock, text, nil)
	for _, rig := range []*rig{r, second} {
		for _, id := range ids {
			request := ask(id)
			request.RunID += "-again"
			rig.job(id, func(j *slurm.Job) { j.Restarts = 1 })
			if d := rig.decide(request); d.Arm != arms[id] {
				t.Errorf("job %d is %s, and was %s: %s", id, d.Arm, arms[id], d.Reason)
			}
		}
	}
	if seen := slices.Sorted(mapsValues(arms)); len(slices.Compact(seen)) != 3 {
		t.Errorf("only %s", seen)
	}
}

func mapsValues(m map[slurm.JobID]live.Arm) func(func(live.Arm) bool) {
	return func(yield func(live.Arm) bool) {
		for _, v := range m {
			if !yield(v) {
				return
			}
		}
	}
}

// The nodes of a job are in one arm at the same clocks, and its decision is stored
// with the parts of the lot.
func TestNodesOfAJobOfTheConstantArmAreInItTogether(t *testing.T) {
	r := knowing(t, memoryBound())
	r.under(constantly("1237"))
	r.job(100, func(j *slurm.Job) { j.NodeCount = 2 })
	first := r.decide(ask(100))
	r.under(enforceAll)
	request := ask(100)
	request.Node = "n2"
	if second := r.decide(request); second.Arm != live.ArmConstant || second.Core != first.Core ||
		first.Core != 1237 || !second.Apply {
		t.Errorf("%+v, after %+v", second, first)
	}
	r.flush()
	stored, err := r.store.DecisionsOfJob(t.Context(), "alpha", 100)
	if err != nil || len(stored) != 2 {
		t.Fatal(stored, err)
	}
	for _, d := range stored {
		if d.Arm != live.ArmConstant || d.ConstantArm != live.Known(1) || d.HoldOut != live.Known(0) {
			t.Errorf("on %s: arm %s, constant arm %v, hold-out %v", d.Node, d.Arm, d.ConstantArm, d.HoldOut)
		}
	}
	r.job(101, nil)
	r.decide(ask(101))
	r.flush()
	if all, err := r.store.DecisionsOfJob(t.Context(), "alpha", 101); err != nil || len(all) != 1 ||
		all[0].ConstantArm != (live.Number{}) {
		t.Errorf("without such an arm: %+v, %v", all, err)
	}
}

// While records can't be written, nobody is in an arm, whatever clocks were chosen.
func TestTroubleWithRecordsLeavesNobodyInAnArm(t *testing.T) {
	for _, text := range []string{
		constantly("1237"), constantly("1380"),
		// Treated, at default clocks.
		strings.Replace(constantly("1237", bestAtDefault), "constant_arm = 1", "constant_arm = 0.000001", 1),
	} {
		r := newRig(t, func(o *Options) { o.StoreWait = 10 * time.Millisecond })
		for id := range slurm.JobID(6) {
			r.run(id+1, memoryBound())
		}
		r.under(text)
		r.job(100, nil)
		if d := r.decide(ask(100)); d.Arm == live.ArmExcluded {
			t.Fatalf("before the trouble: %+v", d)
		}
		r.flush()
		unlock := r.lock()
		for id, until := slurm.JobID(101), time.Now().Add(time.Minute); ; id++ {
			r.job(id, nil)
			d := r.decide(ask(id))
			if d.Arm == live.ArmExcluded {
				if d.Apply || d.Core != 0 || d.HoldOut || d.ModelVersion == 0 {
					t.Errorf("%+v", d)
				}
				break
			}
			if time.Now().After(until) {
				t.Errorf("still %+v", d)
				break
			}
		}
		unlock()
	}
}

// Whatever is asked, and whatever is configured: a job of the constant arm is at
// default clocks or at its model's constant ones, which its node has, and the run is
// sure to end within its limit, its deadline and as slowly as it may run. Who opted out, asked for
// clocks or shares is in no arm.
func TestNoJobOfTheConstantArmBreaksItsPromises(t *testing.T) {
	r := knowing(t, memoryBound())
	clocks := []dvfsmodel.MHz{802, 945, 1087, 1237, 1380}
	id := slurm.JobID(100)
	rapid.Check(t, func(t *rapid.T) {
		pair := rapid.SampledFrom(clocks).Draw(t, "pair")
		slowdown := rapid.Float64Range(1, 2).Draw(t, "slowdown")
		r.under(constantly(fmt.Sprint(float64(pair)), fmt.Sprintf("max_slowdown = %v", slowdown),
			fmt.Sprintf("adapt = {mode = %q}", rapid.SampledFrom([]string{"on", "off"}).Draw(t, "adapt")),
			fmt.Sprintf("[objective]\nname = %q",
				rapid.SampledFrom([]string{"energy", "edp", "time"}).Draw(t, "objective"))))
		comment := rapid.SampledFrom([]string{
			"", "", "", "", "", "epplan:off", "epplan:fixed=945", "epplan:deadline=+",
		}).Draw(t, "comment")
		if strings.HasSuffix(comment, "+") {
			comment += fmt.Sprintf("%ds", rapid.SampledFrom([]int{
				1, 300, 620, 660, 680, 700, 720, 750, 800, 900, 2000,
			}).Draw(t, "deadline"))
		}
		special := rapid.SampledFrom([]string{"", "", "", "", "", "", "own", "shared"}).Draw(t, "special")
		own, shared := special == "own", special == "shared"
		id++
		limit := time.Duration(rapid.SampledFrom([]int{
			1, 300, 620, 660, 680, 700, 720, 750, 800, 900, 2000,
		}).Draw(t, "limit")) * time.Second
		r.job(id, func(j *slurm.Job) {
			j.Comment, j.TimeLimit = comment, live.LimitOf(limit)
			if own {
				j.GPUFreq = "low"
			}
		})
		request := ask(id)
		request.Shared = shared
		lacks := rapid.SampledFrom([]dvfsmodel.MHz{0, 0, 802, 945, 1087, 1237}).Draw(t, "lacks")
		has := slices.DeleteFunc(slices.Clone(clocks), func(f dvfsmodel.MHz) bool { return f == lacks })
		request.Clocks = []epdapi.ClockGroup{{Mem: 877, Core: has}}
		d, err := r.Decide(r.t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		promised := min(limit.Seconds(), math.Inf(1))
		if !d.Wish.Deadline.IsZero() {
			promised = min(promised, d.Wish.Deadline.Sub(r.clock.read()).Seconds())
		}
		var atDefault float64
		if m := r.learner.Model(record.WorkloadKey{
			Cluster: "alpha", Workload: d.Workload,
			GPUModel: "V100",
		}).Model; m != nil {
			pt := m.At(base.Core, base.Mem)
			atDefault = m.UpperTime(&pt, r.Settings().Live.TimeMargin)
		}
		switch {
		case d.Arm == live.ArmTreated || d.Arm == live.ArmHeldOut:
			t.Fatalf("all are of the constant arm, if of any: %+v", d)
		case d.Arm == live.ArmConstant &&
			(own || shared || comment == "epplan:off" || comment == "epplan:fixed=945"):
			t.Fatalf("compared: %+v", d)
		case d.Arm != live.ArmConstant:
		case !d.Apply && d.Core == 0 && d.Mem == 0:
		case d.Core != pair || d.Mem != 0 || !slices.Contains(has, pair) || d.Adapt != nil:
			t.Fatalf("constant clocks are %v MHz of %v: %+v", pair, has, d)
		case !(d.Upper.Or(math.Inf(1)) <= min(promised, slowdown*atDefault)*(1+1e-9)):
			t.Fatalf("%v s at most, %v s promised, at default clocks %v s and at most %v times that: %+v", d.Upper,
				promised, atDefault, slowdown, d)
		}
	})
}
