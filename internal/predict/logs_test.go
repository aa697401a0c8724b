package predict_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/predict"
	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// readLog returns one of the measured logs.
func readLog(t *testing.T, log string) *predict.Table {
	t.Helper()
	f, err := os.Open(shareddata.Path(t, "jobs/"+log+".csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	table, err := predict.ReadTable(f, log, predict.Columns{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// lastFifth predicts the jobs of a log that its baselines were tested on.
func lastFifth(t *testing.T, log string, target predict.Target, jobs int) predict.Score {
	t.Helper()
	table := readLog(t, log)
	train, test := split(table, len(table.Jobs)-jobs)
	predictions, err := predict.Replay(t.Context(), target, train, test, nil)
	if err != nil {
		t.Fatal(err)
	}
	truths := make([]float64, 0, jobs)
	for i := range test.Outcomes {
		truths = append(truths, test.Outcomes[i].ValueOf(target))
	}
	return predict.ScorePredictions(predictions, truths)
}

// docs/prediction.md has all logs and targets, also the two that take long.
func TestErrorsAreBelowEveryBaselineOfTheLogs(t *testing.T) {
	baselines := shareddata.Rows(t, shareddata.Path(t, "jobs/baselines.csv"))
	for _, c := range []struct {
		log, column string
		target      predict.Target
		jobs        int
	}{
		{"kth_sp2", "runtime", predict.Time, 3418},
		{"synthetic_gpu_history", "runtime", predict.Time, 1200},
		{"synthetic_gpu_history", "energy", predict.Energy, 1200},
		{"co2_inference_a100", "energy", predict.Energy, 501},
		{"synthetic_gpu_history", "power_per_gpu", predict.Power, 1200},
		{"co2_inference_a100", "power_per_gpu", predict.Power, 501},
		{"co2_inference_a100", "runtime", predict.Time, 501},
	} {
		t.Run(c.log+" "+c.column, func(t *testing.T) {
			t.Parallel()
			s := lastFifth(t, c.log, c.target, c.jobs)
			t.Logf("%+v", s)
			if s.Jobs != c.jobs || s.Coverage < 0.88 || s.Coverage > 0.92 {
				t.Errorf("coverage %.4f of %d jobs, want 0.88 to 0.92 of %d", s.Coverage, s.Jobs, c.jobs)
			}
			for _, row := range baselines {
				if row["data"] != c.log || row["target"] != c.column {
					continue
				}
				if most := number(t, row["mae"]); s.MeanAbsoluteError >= most {
					t.Errorf("MAE %g, %s has %g", s.MeanAbsoluteError, row["predictor"], most)
				}
				if most := number(t, row["median_relative_error"]); s.MedianRelativeError >= most {
					t.Errorf("median relative error %g, %s has %g", s.MedianRelativeError,
						row["predictor"], most)
				}
			}
		})
	}
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
