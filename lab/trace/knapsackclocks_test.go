package trace_test

import (
	"bytes"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/catalog"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	measured "github.com/epplan/epplan/internal/trace"
	"github.com/epplan/epplan/lab/trace"
)

// knapsackApps names, for each job type of the PREDICT paper's queues, the
// measured application that stands for it on each of [trace.KnapsackModels]
// (lab/docs/papers.md).
var knapsackApps = map[string][2]string{
	"resnet":       {"convolutionSeparable", "convolutionSeparable"},
	"vgg":          {"convolutionTexture", "convolutionTexture"},
	"vit":          {"matrixMul", "matrixMulS"},
	"bert":         {"reduction", "reduction"},
	"gpt-finetune": {"transpose", "transpose"},
	"lstm":         {"scalarProd", "scalarProd"},
	"gan":          {"quasirandomGenerator", "quasirandomGenerator"},
	"diffusion":    {"hotspot", "hotspot"},
}

// queueModels is the file of models of the job types that is handed out.
const queueModels = "../../cmd/epplab/testdata/knapsack-models.toml"

// measurements returns the samples of a file by application.
func measurements(t *testing.T, file string) map[string][]dvfsmodel.Sample {
	t.Helper()
	f, err := os.Open(shareddata.Path(t, "dvfs/"+file))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	apps, err := measured.ReadDVFS(f, file)
	if err != nil {
		t.Fatal(err)
	}
	samples := make(map[string][]dvfsmodel.Sample)
	for i := range apps {
		samples[apps[i].App] = apps[i].Samples
	}
	return samples
}

func modelsOfQueues(t *testing.T) *config.Models {
	t.Helper()
	text, err := os.ReadFile(queueModels)
	if err != nil {
		t.Fatal(err)
	}
	models, err := config.ReadModels(bytes.NewReader(text), queueModels)
	if err != nil {
		t.Fatal(err)
	}
	return models
}

func TestTheModelsOfTheJobTypesAreFitsOfTheApplicationsTheyAreMappedTo(t *testing.T) {
	models := modelsOfQueues(t)
	for gpu, name := range trace.KnapsackModels {
		samples := measurements(t,
			map[string]string{"V100-2022": "v100_2022.csv", "RTX2070S": "rtx2070s.csv"}[name])
		profile, err := config.BuiltinProfiles().Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		for kind, apps := range knapsackApps {
			fitted, err := dvfsmodel.Fit(samples[apps[gpu]], profile.Default, &dvfsmodel.FitOptions{})
			if err != nil {
				t.Fatalf("%s: %v", apps[gpu], err)
			}
			response, err := catalog.New(config.BuiltinProfiles(), models, nil).Workload(kind, name)
			if err != nil || response == nil {
				t.Fatalf("%s on %s: %v, %v", kind, name, response, err)
			}
			for _, s := range samples[apps[gpu]] {
				want := fitted.At(s.Core, s.Mem)
				time, power := response.Model().Time(want.Scaling.Fc, want.Scaling.Fm),
					response.Model().Power(want.Scaling)
				if math.Abs(time/want.Time-1) > 1e-9 || math.Abs(float64(power/want.Power)-1) > 1e-9 {
					t.Errorf("%s on %s at %v/%v MHz: %v s and %v W, %s fits %v and %v", kind, name, s.Core,
						s.Mem, time, power, apps[gpu], want.Time, want.Power)
				}
			}
		}
	}
}

func TestJobsThatMayBeClockedTakeAtDefaultClocksWhatTheQueueSays(t *testing.T) {
	const row = "x,5,%,2,4,100,200,0.5,0.25,110,210,0.6,0.3\n"
	read := func(kind string) []trace.KnapsackJob {
		jobs, err := trace.ReadKnapsack(strings.NewReader(queueHeader+strings.Replace(row, "%", kind, 1)),
			"q.csv", trace.Independent)
		if err != nil {
			t.Fatal(err)
		}
		return jobs
	}
	models := modelsOfQueues(t)
	catalog := catalog.New(config.BuiltinProfiles(), models, nil)
	jobs := read("bert")
	predicted, truth, err := trace.KnapsackProblem(jobs, &trace.KnapsackPool{Name: "p", GPUs: [2]int{3, 5}})
	if err != nil {
		t.Fatal(err)
	}
	if err := trace.EnableClocks(jobs, predicted, truth, catalog.Workload); err != nil {
		t.Fatal(err)
	}
	at := truth.Tasks[0].Options[1].Response.Default()
	if kWh := float64(at.Energy) * 4 / 3.6e6; math.Abs(at.Time-200) > 1e-6 || math.Abs(kWh-0.25) > 1e-9 {
		t.Errorf("%v s and %v kWh on B, want 200 and 0.25", at.Time, kWh)
	}
	best, err := predicted.Tasks[0].Options[0].Response.Optimum(dvfsmodel.MinEnergy(), math.Inf(1))
	if err != nil {
		t.Fatal(err)
	}
	if kWh := float64(best.Energy) * 2 / 3.6e6; kWh > 0.9*0.6 || best.Time < 110 {
		t.Errorf("at the clocks with the least energy %v s and %v kWh on A, want less energy than 0.6 for "+
			"more time than 110", best.Time, kWh)
	}
	err = trace.EnableClocks(read("poker"), predicted, truth, catalog.Workload)
	if err == nil || !strings.Contains(err.Error(), `"poker", which has no model on V100-2022`) {
		t.Errorf("error %v, want the type without a model", err)
	}
}
