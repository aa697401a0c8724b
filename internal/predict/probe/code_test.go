package probe_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/epplan/epplan/internal/predict/probe"
	"github.com/epplan/epplan/internal/predict/source"
	"github.com/epplan/epplan/internal/testkit/shareddata"
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

// foldScore is how a probe fares on folds left out, and the mean of the family (of all
// where it has no other member).
type foldScore struct {
	probed, mean float64   // mean absolute errors
	inside       float64   // part of the truths in their intervals
	widths       []float64 // of intervals, by their estimates, in order
}

func (s *foldScore) width() float64 { return s.widths[len(s.widths)/2] }

// scoreFolds scores a probe on folds; foldOf is the fold of each program.
func scoreFolds(t *testing.T, kind probe.Kind, all []program, column string, foldOf []int) *foldScore {
	t.Helper()
	score, count := &foldScore{}, float64(len(all))
	for fold := range slices.Max(foldOf) + 1 {
		set := &probe.Set{Style: source.Style}
		sums, counts := map[string]float64{}, map[string]float64{}
		for i := range all {
			if foldOf[i] == fold {
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
		for i := range all {
			if foldOf[i] != fold {
				continue
			}
			truth, key := all[i].value(t, column), all[i].family
			if counts[key] == 0 {
				key = ""
			}
			e := fitted.Estimate(all[i].embedding)
			score.probed += math.Abs(e.Value-truth) / count
			score.mean += math.Abs(sums[key]/counts[key]-truth) / count
			score.widths = append(score.widths, (e.High-e.Low)/e.Value)
			if e.Low <= truth && truth <= e.High {
				score.inside += 1 / count
			}
		}
	}
	slices.Sort(score.widths)
	return score
}

// inTurn deals programs to folds in turn.
func inTurn(programs, folds int) []int {
	out := make([]int, programs)
	for i := range out {
		out[i] = i % folds
	}
	return out
}

// allTargets also scores the network on those targets that are like the others.
var allTargets = flag.Bool("all-targets", false, "score the network on all targets, which takes minutes") //nolint:gochecknoglobals // a test's flag

func TestProbesBeatTheMeanOfTheFamilyByAThird(t *testing.T) {
	all := usual(programs(t))
	for _, c := range []struct {
		kind  probe.Kind
		folds int
		most  float64 // error, by that of the mean
	}{
		{probe.Linear, 6, 0.7},
		{probe.Linear, len(all), 0.7},
		{probe.MLP, 6, 0.9},
	} { // the network needs more jobs
		t.Run(fmt.Sprintf("%s in %d folds", c.kind, c.folds), func(t *testing.T) {
			inside, columns := 0.0, drawnColumns[:]
			if c.kind == probe.MLP && !*allTargets {
				columns = columns[:1]
			}
			for _, column := range columns {
				s := scoreFolds(t, c.kind, all, column, inTurn(len(all), c.folds))
				t.Logf("%s: MAE %.4g, mean of the family %.4g (%.0f %% less), %.0f %% inside, width %.2f "+
					"of the estimate (median)",
					column, s.probed, s.mean, 100*(1-s.probed/s.mean), 100*s.inside, s.width())
				inside += s.inside / float64(len(columns))
				if s.probed > c.most*s.mean {
					t.Errorf("%s: MAE %g, want %g at most", column, s.probed, c.most*s.mean)
				}
				if s.inside < 0.86 {
					t.Errorf("%s: %.3f inside, want 0.86 at least", column, s.inside)
				}
			}
			t.Logf("all of these: %.1f %% inside", 100*inside)
		})
	}
}

// How programs are dealt to six folds decides by five points how many of 48 lie inside.
func TestIntervalsHoldNineOfTenProgramsHoweverTheyAreDealt(t *testing.T) {
	all := usual(programs(t))
	const deals = 20
	pooled := 0.0
	for _, column := range drawnColumns {
		inside, width := 0.0, 0.0
		for deal := range uint64(deals) {
			foldOf := inTurn(len(all), 6)
			random := rand.New(rand.NewPCG(deal, 6))
			random.Shuffle(len(foldOf), func(i, k int) { foldOf[i], foldOf[k] = foldOf[k], foldOf[i] })
			s := scoreFolds(t, probe.Linear, all, column, foldOf)
			inside += s.inside / deals
			width += s.width() / deals
		}
		t.Logf("linear, %s, %d deals to 6 folds: %.1f %% inside, width %.2f", column, deals,
			100*inside, width)
		pooled += inside / float64(len(drawnColumns))
	}
	t.Logf("linear, all targets: %.1f %% inside", 100*pooled)
	if math.Abs(pooled-0.9) > 0.02 {
		t.Errorf("%.3f inside, want 0.9 ± 0.02", pooled)
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
			if d.NoveltyOf(known[i].embedding).IsOutside {
				alarms++
			}
		}
		for i := range all {
			if all[i].strange && d.NoveltyOf(all[i].embedding).IsOutside {
				caught += 1.0 / folds
			}
		}
	}
	strange := float64(len(all) - len(known))
	t.Logf("recall %.3f, false alarms %.3f", caught/strange, alarms/float64(len(known)))
	if caught/strange < 0.9 || alarms/float64(len(known)) > 0.1 {
		t.Errorf("recall %.3f and false alarms %.3f, want 0.9 at least and 0.1 at most", caught/strange,
			alarms/float64(len(known)))
	}
}
