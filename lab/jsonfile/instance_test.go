package jsonfile_test

import (
	"strings"
	"testing"

	"github.com/epplan/epplan/lab/catstest"
	"github.com/epplan/epplan/lab/jsonfile"
	"github.com/epplan/epplan/planner/share"
)

// small is an instance with everything that its file must have.
const small = `{
  "p_gs_w": 23.3, "alpha_w_per_mhz": 0.09, "beta": 0.91,
  "f_levels_mhz": [135, 180, 1350],
  "slot_s": 60,
  "servers": [{"p_static_w": 100, "gpu_mem_gb": [16, 32]}],
  "tasks": [
    {"mem_gb": 4, "util_pct": [10, 20]},
    {"mem_gb": 5, "util_pct": [30, 40], "v_gpus": 2}
  ]
}`

func TestInstanceTakesDefaultsForWhatIsLeftOut(t *testing.T) {
	in, err := jsonfile.ReadInstance(strings.NewReader(small), "small.json")
	if err != nil {
		t.Fatal(err)
	}
	if in.SLA != 1.2 || in.Physics.StepMHz != 45 || in.Physics.Max() != 1350 || in.Slots() != 2 {
		t.Errorf("sla %g, step %g, f_max %g, slots %d", in.SLA, in.Physics.StepMHz,
			in.Physics.Max(), in.Slots())
	}
	first, second := in.Tasks[0], in.Tasks[1]
	if first.ID != "0" || first.GPUs != 1 || first.Kappa != 1.2 || second.GPUs != 2 ||
		second.UtilPct[1] != 40 {
		t.Errorf("tasks %+v, %+v", first, second)
	}
}

func TestBadInstancesSayWhereAndWhatWasExpected(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{`"beta": 0.91`, `"beta": -1`, `bad.json:2: beta is -1, want 0 to 10`},
		{`"beta": 0.91`, `"beta": null`, `bad.json:1: the instance has no beta, want a number from 0 to 10`},
		{`"beta": 0.91`, `"beta": NaN`, `bad.json:2: beta: `},
		{`"beta": 0.91,`, ``, `bad.json:1: the instance has no beta, want a number from 0 to 10`},
		{
			`"beta": 0.91`, `"beat": 0.91`,
			`bad.json:2: beat is no field of an instance, want one of those in lab/docs/consolidation.md`,
		},
		{`"beta": 0.91`, `"beta": 0.91, "beta": 0.91`, `bad.json:2: beta: duplicate object member name`},
		{
			`[135, 180, 1350]`, `[135, 1350, 180]`,
			`bad.json:3: f_levels_mhz[2] is 180 after 1350, want the frequencies ascending`,
		},
		{`[135, 180, 1350]`, `[]`, `bad.json:3: f_levels_mhz has 0 frequencies, want 1 to 10000`},
		{`[135, 180, 1350]`, `{}`, `bad.json:3: f_levels_mhz is an object, want a list`},
		{
			`"slot_s": 60`, `"slot_s": 60, "f_max_mhz": 1400`,
			`bad.json:4: f_max_mhz is 1400, want the last of f_levels_mhz, 1350`,
		},
		{`"slot_s": 60`, `"slot_s": 60, "n_slots": 3`, `bad.json:4: n_slots is 3, but the first task has 2`},
		{`"slot_s": 60`, `"slot_s": 0`, `bad.json:4: slot_s is 0, want more`},
		{`"slot_s": 60`, `"slot_s": 60, "sla": 0.9`, `bad.json:4: sla is 0.9, want 1 to 1000`},
		{`[16, 32]`, `[16, "32"]`, `bad.json:5: servers[0].gpu_mem_gb[1] is "32", want a number`},
		{`[16, 32]`, `[]`, `bad.json:5: servers[0] has no gpu_mem_gb`},
		{`"p_static_w": 100`, `"p_static_w": -5`, `bad.json:5: servers[0].p_static_w is -5, want 0 to 1e+09`},
		{
			`"util_pct": [10, 20]`, `"util_pct": [10, null]`,
			`bad.json:7: tasks[0].util_pct[1] is null, want a number`,
		},
		{
			`"util_pct": [10, 20]`, `"util_pct": [10, 101]`,
			`bad.json:7: tasks[0].util_pct[1] is 101, want 0 to 100`,
		},
		{`"util_pct": [10, 20]`, `"util_pct": [10, 1e400]`, `bad.json:7: tasks[0].util_pct[1] `},
		{
			`"util_pct": [10, 20]`, `"util_pct": [10, 20], "mean_util_pct": 20`,
			`bad.json:7: tasks[0].mean_util_pct is 20, but the mean of util_pct is 15.0000`,
		},
		{
			`"util_pct": [30, 40]`, `"util_pct": [30]`,
			`bad.json:8: tasks[1] has 1 slots of util_pct, want 2 as the first task has`,
		},
		{`"v_gpus": 2`, `"v_gpus": 3`, `bad.json:8: tasks[1].v_gpus is 3, want 1 to 2`},
		{`"v_gpus": 2`, `"v_gpus": 1.5`, `bad.json:8: tasks[1].v_gpus is 1.5, want a whole number`},
		{`"v_gpus": 2`, `"id": 0`, `bad.json:8: tasks[1] is called "0" again, want each id once`},
		{"  ]\n}", "  ]\n", `bad.json:`},
		{small, ``, `bad.json: is empty, want an instance as a JSON object`},
		{small, `[]`, `bad.json:1: the instance is a list, want an object`},
	} {
		t.Run(c.new, func(t *testing.T) {
			in, err := jsonfile.ReadInstance(strings.NewReader(strings.Replace(small, c.old, c.new, 1)),
				"bad.json")
			if err == nil {
				t.Fatalf("read %+v, want an error", in)
			}
			if !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("error %q, want %q", err, c.want)
			}
		})
	}
}

func TestInstancesOfTheDataAreRead(t *testing.T) {
	for _, file := range catstest.Files(t) {
		in := catstest.Read(t, file)
		if in.Slots() != 24 || len(in.Tasks) == 0 || len(in.GPUs()) == 0 || in.Name == "" {
			t.Errorf("%s: %d slots, %d tasks, %d GPUs", file, in.Slots(), len(in.Tasks), len(in.GPUs()))
		}
	}
}

func FuzzInstancesThatAreReadCanBePlacedAndJudged(f *testing.F) {
	f.Add(small)
	f.Add(strings.Replace(small, `"v_gpus": 2`, `"v_gpus": 2, "kappa": 1`, 1))
	f.Fuzz(func(t *testing.T, text string) {
		in, err := jsonfile.ReadInstance(strings.NewReader(text), "fuzz.json")
		if err != nil {
			return
		}
		if len(in.GPUs())*len(in.Tasks)*in.Slots() > 1<<16 {
			return // takes long, says nothing more
		}
		for _, policy := range share.Policies() {
			v := share.Evaluate(in, share.Place(in, policy.Rule, policy.Clocks))
			if len(v.Faults) > 0 || v.OverMemory > 0 || !(v.PowerW >= 0) || !(v.WorstSlowdown >= 1) {
				t.Fatalf("%s: %+v", policy.Name, v)
			}
		}
	})
}
