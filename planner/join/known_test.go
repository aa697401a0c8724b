package join_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/join"
	"github.com/epplan/epplan/queue"
)

// twoModels is a catalog of GPU models slow and fast, the alias "quick" of fast, and
// models of workloads: fft on both, mesh on fast only.
type twoModels struct{}

func (twoModels) Hardware(gpuModel string) (join.Hardware, error) {
	typical := map[string]dvfsmodel.Watt{"slow": 50, "fast": 150}
	name := gpuModel
	if name == "quick" {
		name = "fast"
	}
	if typical[name] == 0 {
		return join.Hardware{}, errors.New("unknown GPU model " + gpuModel)
	}
	wide := dvfsmodel.WideRange()
	return join.Hardware{
		Name: name, Range: &wide, Default: dvfsmodel.Point{Scaling: dvfsmodel.DefaultScaling()},
		Typical: typical[name],
	}, nil
}

func (twoModels) Workload(workload, gpuModel string) (dvfsmodel.Response, error) {
	wide := dvfsmodel.WideRange()
	params, ok := map[string]dvfsmodel.Params{
		"fft slow":  {P0: 40, C: 60, D: 8, Delta: 1},   // 8 s at 100 W
		"fft fast":  {P0: 100, C: 100, D: 2, Delta: 1}, // 2 s at 200 W
		"mesh fast": {P0: 100, C: 200, D: 5, Delta: 1}, // 5 s at 300 W
	}[workload+" "+gpuModel]
	if !ok {
		return nil, nil
	}
	return &dvfsmodel.Continuous{Params: params, Range: &wide}, nil
}

func (twoModels) CheckWorkload(string) error { return nil }

func (twoModels) Uncertainty(string, string) *dvfsmodel.Uncertainty { return nil }

// joined joins one job of a CSV file with nodes of both GPU models.
func joined(t *testing.T, text string, models ...string) (planner.Task, []error, error) {
	t.Helper()
	tasks, warnings, err := joinedBy(t, twoModels{}, text, models...)
	if err != nil {
		return planner.Task{}, nil, err
	}
	return tasks[0], warnings, nil
}

// joinedBy joins the jobs of a CSV file by a catalog.
func joinedBy(
	t *testing.T, catalog join.Catalog, text string, models ...string,
) ([]planner.Task, []error, error) {
	t.Helper()
	batch, err := queue.Read(strings.NewReader(text), "jobs.csv", queue.Auto)
	if err != nil {
		t.Fatal(err)
	}
	cluster := planner.Cluster{}
	for _, model := range models {
		gpus := 4
		if model == "slow" {
			gpus = 8
		}
		cluster.Classes = append(cluster.Classes, planner.NodeClass{Name: model, Model: model, GPUs: gpus})
	}
	return join.Tasks(batch, &cluster, catalog, join.Margins{})
}

// knownCase is a job of a CSV file, its run time (s) and power (W) at default clocks by
// GPU model, and what is warned of; empty: nothing.
type knownCase struct {
	csv  string
	want map[string][2]float64
	warn string
}

func (c *knownCase) check(t *testing.T, models ...string) {
	t.Helper()
	task, warnings, err := joined(t, c.csv, models...)
	if err != nil {
		t.Fatal(err)
	}
	if len(task.Options) != len(c.want) {
		t.Errorf("options %+v, want %v", task.Options, c.want)
	}
	for _, o := range task.Options {
		at, want := o.Response.Default(), c.want[o.Model]
		if math.Abs(at.Time-want[0]) > 1e-9 || math.Abs(float64(at.Power)-want[1]) > 1e-9 {
			t.Errorf("on %s %v s at %v W, want %v", o.Model, at.Time, at.Power, want)
		}
		if strings.Contains(c.warn, "W assumed on "+o.Model) && !o.Assumed {
			t.Errorf("the power on %s isn't marked as assumed", o.Model)
		}
	}
	told := errors.Join(warnings...)
	if c.warn == "" && told != nil ||
		c.warn != "" && (told == nil || !strings.Contains(told.Error(), c.warn)) {
		t.Errorf("warnings %v, want %q", told, c.warn)
	}
}

func TestARunTimeIsOfTheGPUModelThatTheBatchNames(t *testing.T) { //nolint:funlen // most of it is a table
	for name, c := range map[string]knownCase{
		"as many repetitions elsewhere": {
			"id,workload,runtime_s,runtime_gpu_model\na,fft,80,slow\n",
			map[string][2]float64{"slow": {80, 100}, "fast": {20, 200}},
			"",
		},
		"of the other model": {
			"id,workload,runtime_s,runtime_gpu_model\na,fft,80,quick\n",
			map[string][2]float64{"slow": {320, 100}, "fast": {80, 200}},
			"",
		},
		"by columns": {
			"id,workload,runtime_s.slow,runtime_s.quick\na,fft,80,50\n",
			map[string][2]float64{"slow": {80, 100}, "fast": {50, 200}},
			"",
		},
		"by one column": {
			"id,workload,runtime_s.slow\na,fft,80\n", map[string][2]float64{
				"slow": {80, 100}, "fast": {20, 200},
			}, "",
		},
		"on every model": {
			"id,workload,runtime_s,runtime_gpu_model\na,fft,80,*\n",
			map[string][2]float64{"slow": {80, 100}, "fast": {80, 200}},
			"",
		},
		"none stated": {
			"id,workload\na,fft\n", map[string][2]float64{"slow": {8, 100}, "fast": {2, 200}}, "",
		},
		"on the one that the job names": {
			"id,workload,runtime_s,gpus\na,fft,80,quick:2\n", map[string][2]float64{"fast": {80, 200}}, "",
		},
		"on the one with nodes that are wide": {
			"id,workload,runtime_s,gpus\na,fft,80,8\n",
			map[string][2]float64{"slow": {80, 100}, "fast": {20, 200}},
			"",
		},
		"not where nobody knows": {
			"id,runtime_s,power_w,runtime_gpu_model\na,80,90,slow\n",
			map[string][2]float64{"slow": {80, 90}},
			"",
		},
		"not where its workload has no model": {
			"id,workload,runtime_s,power_w,runtime_gpu_model\na,mesh,80,90,slow\n",
			map[string][2]float64{"slow": {80, 90}},
			"",
		},
		"where its workload has a model": {
			"id,workload,runtime_s,runtime_gpu_model\na,mesh,80,fast\n",
			map[string][2]float64{"fast": {80, 300}},
			"",
		},
		"default clocks without a model": {
			"id,workload,runtime_s,power_w,gpus\na,mesh,80,90,slow:1\n",
			map[string][2]float64{"slow": {80, 90}},
			"",
		},
		"a power that is stated": {
			"id,workload,runtime_s,power_w,runtime_gpu_model\na,fft,80,110,slow\n",
			map[string][2]float64{"slow": {80, 110}, "fast": {20, 220}},
			"",
		},
		"a power that contradicts": {
			"id,workload,runtime_s,power_w,runtime_gpu_model\na,fft,80,150,slow\n",
			map[string][2]float64{"slow": {80, 150}, "fast": {20, 300}},
			`job "a" states 150 W, the model of "fft" has 100 W on slow: 150 W taken`,
		},
		"powers by columns": {
			"id,runtime_s.slow,runtime_s.fast,power_w.slow,power_w.fast\na,80,40,70,160\n",
			map[string][2]float64{"slow": {80, 70}, "fast": {40, 160}},
			"",
		},
		"no power of another model is made up": {
			"id,runtime_s.slow,runtime_s.fast,power_w.fast\na,80,40,160\n",
			map[string][2]float64{"slow": {80, 80}, "fast": {40, 160}},
			"80 W assumed on slow",
		},
		"no power moves a job that is made up": {
			"id,runtime_s,runtime_gpu_model\na,80,*\n",
			map[string][2]float64{"slow": {80, 150}, "fast": {80, 150}},
			"150 W assumed on slow",
		},
		"a model of its own is on every model": {
			"id,p0_w,gamma_w,c_w,d_s,delta,t0_s\na,10,0,90,60,1,0\n",
			map[string][2]float64{"slow": {60, 100}, "fast": {60, 100}},
			"",
		},
		"GPUs count in energy that isn't stated": {
			"id,runtime_s.slow,runtime_s.fast,power_w.fast,gpus\na,80,80,160,slow:4;fast:1\n",
			map[string][2]float64{"slow": {80, 40}, "fast": {80, 160}},
			"40 W assumed on slow",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.check(t, "slow", "fast")
			c.check(t, "fast", "slow")
		})
	}
}

func TestARunTimeThatMayBeOfSeveralGPUModelsIsAnError(t *testing.T) {
	for text, want := range map[string]string{
		"id,workload,runtime_s\nb,fft,80\n": "jobs.csv:2:1: job b may run on fast " +
			"or slow, and its runtime_s is of one GPU model: want a column runtime_gpu_model that names " +
			"it, or runtime_s.fast and runtime_s.slow",
		"id,workload,power_w\nb,fft,80\n": "jobs.csv:2:1: job b may run on fast " +
			"or slow, and its power_w is of one GPU model: want a column runtime_gpu_model that names it, " +
			"or power_w.fast and power_w.slow",
		"id,runtime_s,runtime_s.fast\nb,80,40\n": "jobs.csv:2:1: job b may run on fast " +
			"or slow, and its runtime_s is of one GPU model: want a column runtime_gpu_model that names " +
			"it, or runtime_s.fast and runtime_s.slow",
		"id,runtime_s,runtime_gpu_model\n" +
			"b,80,fest\n": `jobs.csv:2:1: job "b": runtime_gpu_model: unknown GPU model fest`,
		"id,runtime_s.fest\nb,80\n": `jobs.csv:2:1: job "b": runtime_s.fest: unknown GPU model fest`,
		"id,runtime_s.fast," +
			"runtime_s.quick\nb,80,70\n": `jobs.csv:2:1: job "b" states run times on fast twice, by two of its names, want one`,
		"id,runtime_s.fast,runtime_s,runtime_gpu_model\n" +
			"b,8,7,quick": `jobs.csv:2:1: job "b" states run times on fast twice, one by runtime_gpu_model, want one`,
	} {
		if _, _, err := joined(t, text, "slow", "fast"); err == nil || err.Error() != want {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
	}
}

func TestAMissingRunTimeIsCountedWhereOthersHaveOne(t *testing.T) {
	for rows, want := range map[string]string{
		"a,fft,9\nb,fft,\nc,fft,0\nd,mesh,\n": "3 jobs state no run times: their workloads' measured ones are taken, " +
			`such as jobs.csv:5:1: job "d" states no run time, as others do: 5 s taken, those of the measurements of ` +
			`"mesh" on fast`,
		"a,fft,9\nb,fft,8\n": "",
		"a,fft,\nb,fft,\n":   "", // a batch of workloads
	} {
		_, warnings, err := joinedBy(t, twoModels{}, "id,workload,runtime_s\n"+rows, "fast")
		got := ""
		if g := groupOf(warnings, queue.WarnNoRunTime); g.Count > 0 {
			got = g.Text()
		}
		if err != nil || got != want {
			t.Errorf("%q: %q, %v", rows, got, err)
		}
	}
}
