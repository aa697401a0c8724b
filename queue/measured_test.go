package queue_test

import (
	"strings"
	"testing"

	"github.com/epplan/epplan/queue"
)

func TestRunTimesAndPowersAreOfAGPUModel(t *testing.T) {
	byModel := job("a", func(j *queue.Job) {
		j.Measured = []queue.Measured{
			{Model: "GTX1080Ti", Runtime: 90, Power: 110.5}, {Model: "V100", Runtime: 60},
		}
		j.Power, j.RuntimeModel = 250, "V100"
	})
	for name, text := range map[string]string{
		"columns": "id,runtime_s.V100,power_w,runtime_gpu_model,power_w.GTX1080Ti," +
			"runtime_s.GTX1080Ti\na,60,250,V100,110.5,90\n",
		"objects":      `[{"id":"a","runtime_s":{"V100":60,"GTX1080Ti":90},"power_w":250,"power_w.GTX1080Ti":110.5,"runtime_gpu_model":"V100"}]`,
		"keys":         `[{"id":"a","runtime_s.V100":60,"runtime_s.GTX1080Ti":90,"power_w":250,"runtime_gpu_model":"V100","power_w.GTX1080Ti":110.5}]`,
		"null is none": `[{"id":"a","runtime_s":{"V100":60,"GTX1080Ti":90,"A100":null},"power_w":250,"power_w.GTX1080Ti":110.5,"runtime_gpu_model":"V100"}]`,
		"an empty cell": "id,runtime_s,runtime_s.V100,power_w,runtime_gpu_model,power_w.GTX1080Ti," +
			"runtime_s.GTX1080Ti,power_w.A100\na,,60,250,V100,110.5,90,\n",
	} {
		t.Run(name, func(t *testing.T) {
			checkJobs(t, placeless(read(t, queue.Auto, text).Jobs), []queue.Job{byModel})
		})
	}
}

// Columns of a GPU model have units, and names that the caller gives them, as those of any.
func TestRunTimesAndPowersOfAGPUModelHaveUnitsAndGivenNames(t *testing.T) {
	byModel := job("a", func(j *queue.Job) {
		j.Measured = []queue.Measured{{Model: "V100-SXM2", Runtime: 5400, Power: 250}}
	})
	for text, given := range map[string]map[string]string{
		"id,Runtime (Std.),runtime_s.V100-SXM2,power_w.V100-SXM2\na,,5400,250\n": nil,
		"id,runtime_h.V100-SXM2,Power (kW).V100-SXM2\na,1.5,0.25\n":              nil,
		"id,runtime_s.V100-SXM2,power_w.V100-SXM2\na,01:30:00,250\n":             nil,
		`[{"id":"a","runtime_min":{"V100-SXM2":90},"power_kw.V100-SXM2":0.25}]`:  nil,
		"id;Zeit (h);Leistung\na;1,5;250\n": {
			"Zeit (h)": "runtime_s.V100-SXM2", "Leistung": "power_w.V100-SXM2",
		},
		`[{"id":"a","Zeit":90,"Leistung":0.25}]`: {
			"Zeit": "runtime_s.V100-SXM2[min]", "Leistung": "power_w.V100-SXM2[kW]",
		},
	} {
		for _, target := range given {
			if err := queue.CheckTarget(target); err != nil {
				t.Error(err)
			}
		}
		b, err := queue.ReadWith(strings.NewReader(text), "batch", queue.Auto, &queue.TableOptions{Columns: given})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		checkJobs(t, placeless(b.Jobs), []queue.Job{byModel})
		if len(b.Warnings) > 0 {
			t.Errorf("%s: %v", text, b.Warnings)
		}
	}
	if b := read(t, queue.Auto, `[{"id":"a","runtime":{"V100":60}}]`); len(b.Warnings) != 1 {
		t.Errorf("%v, want a warning of the unit", b.Warnings)
	}
	if queue.CheckTarget("runtime_h.V100") == nil || queue.CheckTarget("runtime_s.V100[W]") == nil {
		t.Error("targets are columns with the unit in brackets")
	}
}

func TestARunTimeOfAGPUModelThatMakesNoSenseIsNamed(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{
			"id,runtime_s.\na,1\n",
			"batch:1:4: runtime_s has no GPU model after the dot, want one such as runtime_s.V100",
		},
		{
			"id,runtime_s.a:b\na,1\n",
			`batch:1:4: runtime_s on GPU model "a:b" has one of : ; *, want a name without`,
		},
		{"id,runtime_s.V100\na,soon\n", `batch:2:3: runtime_s "soon" is not a time, want seconds such as 12.5, 02:30:00, 1-02:30:00, 90m or PT2H30M`},
		{"id,runtime_s.V100\na,0\n", "batch:2:3: runtime_s on V100 is 0, want a number above 0, up to 1e15"},
		{
			"id,runtime_s.V100,runtime_s. V100\na,1,2\n",
			`batch:2:5: runtime_s is there twice for GPU model "V100", want once each`,
		},
		{
			"id,runtime_s.V100\na,\n",
			`batch:2:1: nothing says how long job "a" runs, want a run time, a workload or a model`,
		},
		{
			"id,runtime_s,runtime_s.V100,runtime_gpu_model\na,1,2,V100\n",
			`batch:2:3: runtime_s on "V100" is there twice: runtime_s is of that GPU model, too, want it once`,
		},
		{
			"id,runtime_s,runtime_gpu_model\na,1,a;b\n",
			`batch:2:5: runtime_gpu_model "a;b" has one of : ; *, want a name without, or * for every GPU model alike`,
		},
		{
			`[{"id":"a","runtime_s":{}}]`,
			`batch:1:24: runtime_s is an empty object, want numbers such as {"V100":60,"A100":40}`,
		},
		{`[{"id":"a","runtime_s":{"V100":"1"}}]`, `batch:1:32: runtime_s is string "1", want a number`},
		{
			`[{"id":"a","runtime_s":{"V100":1},"runtime_s.V100":2}]`,
			`batch:1:52: runtime_s is there twice for GPU model "V100", want once each`,
		},
	} {
		_, err := queue.Read(strings.NewReader(c.text), "batch", queue.Auto)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}

func TestAGPUModelOfRunTimesIsForJobsThatDontSay(t *testing.T) {
	b := read(t, queue.CSV, "id,workload,runtime_s,power_w,runtime_gpu_model,runtime_s.A100\na,,1,,,\n"+
		"b,,1,,P100,\nc,x,,,,\nd,,,,,5\ne,x,,7,,\n")
	b.RunOn("V100")
	want := []string{"V100", "P100", "", "", "V100"}
	for i := range b.Jobs {
		if got := b.Jobs[i].RuntimeModel; got != want[i] {
			t.Errorf("job %s: run times of %q, want %q", b.Jobs[i].ID, got, want[i])
		}
	}
}
