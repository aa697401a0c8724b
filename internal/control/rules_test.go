package control

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// onlyMain observes partition gpu and enforces all others.
const onlyMain = "[live]\nhold_out = 0\nmode = \"enforce\"\nmodes = {gpu = \"observe\"}"

// ruleCases are jobs of a workload with a model, and what their decision is.
var ruleCases = []struct {
	name    string
	text    string
	job     func(*slurm.Job)
	request func(*epdapi.DecideRequest)
	apply   bool
	core    float64 // 0: default
	arm     live.Arm
	reason  string
}{
	{name: "enforced", apply: true, core: -1, arm: live.ArmTreated, reason: "of the GPUs' energy"},
	{name: "observed", text: mode(live.Observe), core: -1, arm: live.ArmExcluded, reason: "only observed"},
	{name: "advised", text: mode(live.Advise), core: -1, arm: live.ArmExcluded, reason: "advice: "},
	{
		name: "mode of the partition", text: "[live]\nhold_out = 0\nmodes = {gpu = \"enforce\"}",
		apply: true, core: -1, arm: live.ArmTreated, reason: "of the GPUs' energy",
	},
	{
		name: "mode of another partition",
		text: "[live]\nhold_out = 0\nmode = \"enforce\"\nmodes = {gpu = \"observe\"}",
		core: -1, arm: live.ArmExcluded, reason: "only observed",
	},
	{
		name: "started in an observed one of its partitions", text: onlyMain,
		job:     func(j *slurm.Job) { j.Partition, j.State.Base = "gpu,main", slurm.Pending },
		request: func(r *epdapi.DecideRequest) { r.Partition = "gpu" },
		core:    -1, arm: live.ArmExcluded, reason: "only observed",
	},
	{
		name: "started in an enforced one of its partitions", text: onlyMain,
		job:     func(j *slurm.Job) { j.Partition, j.State.Base = "gpu,main", slurm.Pending },
		request: func(r *epdapi.DecideRequest) { r.Partition = "main" },
		apply:   true, core: -1, arm: live.ArmTreated, reason: "of the GPUs' energy",
	},
	{
		name: "started in one of its partitions, nobody says which", text: onlyMain,
		job:  func(j *slurm.Job) { j.Partition = "main,gpu" },
		core: -1, arm: live.ArmExcluded, reason: "only observed",
	},
	{
		name: "opt-out", job: func(j *slurm.Job) { j.Comment = "epplan:off" },
		arm: live.ArmExcluded, reason: "opted out",
	},
	{
		name: "own --gpu-freq", job: func(j *slurm.Job) { j.GPUFreq = "medium" },
		arm: live.ArmExcluded, reason: "hands off",
	},
	{
		name: "fixed", job: func(j *slurm.Job) { j.Comment = "x epplan:fixed=945,877" },
		apply: true, core: 945, arm: live.ArmExcluded, reason: "the user fixed",
	},
	{
		name: "fixed core only", job: func(j *slurm.Job) { j.Comment = "epplan:fixed=945" },
		apply: true, core: 945, arm: live.ArmExcluded, reason: "the user fixed",
	},
	{
		name: "fixed but observed", text: mode(live.Observe),
		job:  func(j *slurm.Job) { j.Comment = "epplan:fixed=945" },
		core: 945, arm: live.ArmExcluded, reason: "only observed",
	},
	{
		name: "fixed outside the table", job: func(j *slurm.Job) { j.Comment = "epplan:fixed=946,877" },
		arm: live.ArmExcluded, reason: "doesn't support",
	},
	{
		name: "fixed outside the administrator's range", text: enforceAll + "min_core = 0.8",
		job: func(j *slurm.Job) { j.Comment = "epplan:fixed=945" },
		arm: live.ArmExcluded, reason: "outside what the administrator allows",
	},
	{
		name: "a narrower range", text: enforceAll + "min_core = 0.85",
		apply: true, core: 1237, arm: live.ArmTreated, reason: "of the GPUs' energy",
	},
	{
		name: "shared", request: func(r *epdapi.DecideRequest) { r.Shared = true },
		arm: live.ArmExcluded, reason: "shared",
	},
	{
		name: "no GPUs", request: func(r *epdapi.DecideRequest) { r.GPUs = 0 },
		arm: live.ArmExcluded, reason: "no GPUs",
	},
	{
		name: "no table", request: func(r *epdapi.DecideRequest) { r.Clocks = nil },
		arm: live.ArmExcluded, reason: "no clocks",
	},
	{
		name: "another workload", job: func(j *slurm.Job) { j.Name = "other" },
		arm: live.ArmExcluded, reason: "no model of this workload",
	},
	{
		name: "another user", job: func(j *slurm.Job) { j.UID = 1001 },
		arm: live.ArmExcluded, reason: "no model of this workload",
	},
	{
		name: "more GPUs", job: func(j *slurm.Job) { j.Allocated = slurm.TRES{"gres/gpu": 2} },
		arm: live.ArmExcluded, reason: "no model of this workload",
	},
	{
		name: "another GPU model", request: func(r *epdapi.DecideRequest) { r.GPUModel = "H100" },
		arm: live.ArmExcluded, reason: "no model of this workload",
	},
	{
		name: "limit unknown", job: func(j *slurm.Job) { j.TimeLimit = live.Limit{} },
		arm: live.ArmExcluded, reason: "limit isn't known",
	},
	{
		name: "no limit", job: func(j *slurm.Job) { j.TimeLimit = live.Unlimited() },
		apply: true, core: -1, arm: live.ArmTreated, reason: "of the GPUs' energy",
	},
	{
		name: "a limit too short for any clocks", job: func(j *slurm.Job) {
			j.TimeLimit = live.LimitOf(5 * time.Minute)
		},
		arm: live.ArmExcluded, reason: "no others are sure to end within the limit",
	},
	{
		name: "the user's deadline", job: func(j *slurm.Job) { j.Comment = "epplan:deadline=+5m" },
		arm: live.ArmExcluded, reason: "within the deadline",
	},
	{
		name: "Slurm's deadline", job: func(j *slurm.Job) { j.Deadline = j.Submit.Add(5 * time.Minute) },
		arm: live.ArmExcluded, reason: "within the deadline",
	},
	{
		name: "a deadline far away", job: func(j *slurm.Job) { j.Deadline = start.Add(24 * time.Hour) },
		apply: true, core: -1, arm: live.ArmTreated, reason: "of the GPUs' energy",
	},
	{
		name: "held out", text: "[live]\nmode = \"enforce\"\nhold_out = 1",
		arm: live.ArmHeldOut, reason: "held out",
	},
	{
		name: "held out but observed", text: "[live]\nhold_out = 1",
		core: -1, arm: live.ArmExcluded, reason: "only observed",
	},
}

func TestEachRuleGivesItsDecision(t *testing.T) {
	for _, tc := range ruleCases {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, nil)
			for id := range slurm.JobID(6) {
				r.run(id+1, memoryBound())
			}
			if tc.text != "" {
				if err := r.Reload(func() (*Settings, error) { return settings(t, tc.text), nil }); err !=
					nil {
					t.Fatal(err)
				}
			}
			r.job(100, tc.job)
			request := ask(100)
			if tc.request != nil {
				tc.request(request)
			}
			d := r.decide(request)
			if d.Apply != tc.apply || d.Arm != tc.arm || !strings.Contains(d.Reason, tc.reason) ||
				d.HoldOut != (tc.arm == live.ArmHeldOut) {
				t.Errorf("apply %t, arm %s, reason %q; want %t, %s, %q", d.Apply, d.Arm, d.Reason, tc.apply,
					tc.arm, tc.reason)
			}
			wantCore(t, &d, tc.core)
			if d.ConfigVersion != r.Settings().Version {
				t.Errorf("configuration %s, want %s", d.ConfigVersion, r.Settings().Version)
			}
		})
	}
}

// A decision's reason says the same of energy as the figures beside it.
func TestTheReasonStatesTheEnergyThatTheDecisionHas(t *testing.T) {
	for hostW, more := range map[string]float64{"0": 0, "100": 100} {
		r := newRig(t, nil)
		for id := range slurm.JobID(6) {
			r.run(id+1, memoryBound())
		}
		text := enforceAll + "[[cluster.nodes]]\ngpu_model = \"V100\"\ngpus = 4\n" +
			"host_w_per_gpu = " + hostW + "\n"
		if err := r.Reload(func() (*Settings, error) { return settings(t, text), nil }); err != nil {
			t.Fatal(err)
		}
		r.job(100, nil)
		d := r.decide(ask(100))
		r.job(101, func(j *slurm.Job) { j.TimeLimit = live.LimitOf(5 * time.Minute) })
		usual := r.decide(ask(101)) // stays at default clocks
		want := fmt.Sprintf(": %.0f%% of the GPUs' energy", 100*d.EnergyJ.Or(0)/d.DefaultJ.Or(1))
		if more > 0 {
			whole := (d.EnergyJ.Or(0) + more*d.Predicted.Or(0)) /
				(d.DefaultJ.Or(1) + more*usual.Predicted.Or(1))
			want += fmt.Sprintf(" (%.0f%% with their share of the node)", 100*whole)
		}
		if !strings.Contains(d.Reason, want+" and ") {
			t.Errorf("%s W of the host: reason %q, want %q", hostW, d.Reason, want)
		}
	}
}

// wantCore checks a decision's core clock; -1 is any but the default one.
func wantCore(t *testing.T, d *live.Decision, want float64) {
	t.Helper()
	core := float64(d.Core)
	if want >= 0 && core != want || want < 0 && !(core > 0 && core < 1380) {
		t.Errorf("core %v MHz, want %v; %s", core, want, d.Reason)
	}
}
