package probe_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/epplan/epplan/internal/predict/probe"
	"github.com/epplan/epplan/internal/predict/source"
	"github.com/epplan/epplan/internal/shareddata"
)

// program is a row of the source-code fixture.
type program struct {
	family    string
	strange   bool
	embedding []float64
	row       map[string]string
}

func programs(t *testing.T) []program {
	t.Helper()
	table := shareddata.Path(t, "code/jobs.csv")
	rows := shareddata.Rows(t, table)
	out := make([]program, 0, len(rows))
	for _, row := range rows {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(table), filepath.FromSlash(row["file"])))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, program{
			family: row["family"], strange: row["ood"] == "1", row: row,
			embedding: source.Embed(source.Read(string(text))),
		})
	}
	return out
}

func (p *program) value(t *testing.T, column string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(p.row[column], 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func usual(all []program) []program {
	return slices.DeleteFunc(slices.Clone(all), func(p program) bool { return p.strange })
}

// foldError is the mean absolute error on folds left out, of a probe and of the
// mean of the family (of all where it has no other member), and how many truths lie in
// their intervals.
func foldError(t *testing.T, kind probe.Kind, all []program, column string, folds int) (probed, mean, inside float64) {
	t.Helper()
	for fold := range folds {
		set := &probe.Set{Style: source.Style}
		sums, counts := map[string]float64{}, map[string]float64{}
		for i := range all {
			if i%folds == fold {
				continue
			}
			v := all[i].value(t, column)
			set.Embeddings, set.Values = append(set.Embeddings, all[i].embedding), append(set.Values, v)
			for _, key := range []string{all[i].family, ""} {
				sums[key] += v
				counts[key]++
			}
		}
		fitted, err := probe.Fit(t.Context(), kind, set)
		if err != nil {
			t.Fatal(err)
		}
		for i := fold; i < len(all); i += folds {
			truth, key := all[i].value(t, column), all[i].family
			if counts[key] == 0 {
				key = ""
			}
			e := fitted.Estimate(all[i].embedding)
			probed += math.Abs(e.Value-truth) / float64(len(all))
			mean += math.Abs(sums[key]/counts[key]-truth) / float64(len(all))
			if e.Low <= truth && truth <= e.High {
				inside += 1 / float64(len(all))
			}
		}
	}
	return probed, mean, inside
}

func TestProbesBeatTheMeanOfTheFamilyByAThird(t *testing.T) {
	all := usual(programs(t))
	for _, kind := range []probe.Kind{probe.Linear, probe.MLP} {
		for _, column := range []string{"time_a_s", "time_b_s", "energy_a_kwh", "energy_b_kwh"} {
			for _, folds := range []int{6, len(all)} {
				if kind == probe.MLP && folds > 6 {
					continue // minutes
				}
				probed, mean, inside := foldError(t, kind, all, column, folds)
				t.Logf("%s, %s, %d folds: MAE %.4g, mean of the family %.4g (%.0f %% less), %.0f %% inside", kind, column, folds, probed, mean, 100*(1-probed/mean), 100*inside)
				most := 0.7 * mean
				if kind == probe.MLP {
					most = 0.9 * mean // it needs more jobs
				}
				if probed > most {
					t.Errorf("%s, %s, %d folds: MAE %g, want %g at most", kind, column, folds, probed, most)
				}
			}
		}
	}
}

func TestStrangeSourcesAreFlaggedAndUsualOnesAreNot(t *testing.T) {
	all := programs(t)
	known := usual(all)
	const folds = 12
	caught, alarms := 0.0, 0.0
	for fold := range folds {
		set := &probe.Set{Style: source.Style}
		for i := range known {
			if i%folds != fold {
				set.Embeddings, set.Values = append(set.Embeddings, known[i].embedding), append(set.Values, 1)
			}
		}
		d, err := probe.NewDistances(set)
		if err != nil {
			t.Fatal(err)
		}
		for i := fold; i < len(known); i += folds {
			if d.Of(known[i].embedding).Out {
				alarms++
			}
		}
		for i := range all {
			if all[i].strange && d.Of(all[i].embedding).Out {
				caught += 1.0 / folds
			}
		}
	}
	strange := float64(len(all) - len(known))
	t.Logf("recall %.3f, false alarms %.3f", caught/strange, alarms/float64(len(known)))
	if caught/strange < 0.9 || alarms/float64(len(known)) > 0.1 {
		t.Errorf("recall %.3f and false alarms %.3f, want 0.9 at least and 0.1 at most", caught/strange, alarms/float64(len(known)))
	}
}
