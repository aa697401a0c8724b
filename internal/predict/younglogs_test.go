package predict_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/epplan/epplan/internal/predict"
)

var youngRounds = flag.Int("young-rounds", 0, "pieces of each log and length that stand for young "+
	"histories, also of 1,000 jobs; 0: a few, and shorter ones only")

// tried is a prediction and what came of it.
type tried struct {
	repeats, history int
	width            float64 // logarithm of upper by lower end
	inside           bool
}

// piece returns a part of a log: a history of some jobs and those that follow; of three
// owners at most where they are to repeat themselves more. False: the log ends before.
func piece(
	t *predict.Table, random *rand.Rand, history int, fewOwners bool,
) (train, test *predict.Table, ok bool) {
	const follow = 50
	begin := random.IntN(max(1, len(t.Jobs)-history-follow))
	owners := map[string]bool{}
	most := 1 + random.IntN(3)
	all := &predict.Table{}
	for i := begin; i < len(t.Jobs) && len(all.Jobs) < history+follow; i++ {
		owner := t.Jobs[i].Owner
		if fewOwners && !owners[owner] && len(owners) == most {
			continue
		}
		owners[owner] = true
		all.Jobs, all.Outcomes = append(all.Jobs, t.Jobs[i]), append(all.Outcomes, t.Outcomes[i])
	}
	if len(all.Jobs) <= history {
		return nil, nil, false
	}
	train, test = split(all, history)
	return train, test, true
}

// repeatsOf counts the jobs of both tables that had ended when one was submitted and
// agree with it in owner, names and sizes.
func repeatsOf(j *predict.Features, tables ...*predict.Table) int {
	n := 0
	for _, t := range tables {
		for i := range t.Jobs {
			o := &t.Jobs[i]
			if t.Outcomes[i].End <= j.Submit && o.Owner == j.Owner && slices.Equal(o.Labels, j.Labels) &&
				fmt.Sprint(o.Sizes) == fmt.Sprint(j.Sizes) {
				n++
			}
		}
	}
	return n
}

// tryYoung predicts what follows pieces of a log as a young installation would, from
// the pieces alone. The last fifth isn't touched.
func tryYoung(t *testing.T, log string, target predict.Target, history, rounds int) (out []tried) {
	t.Helper()
	table := readLog(t, log)
	table, _ = split(table, len(table.Jobs)*4/5)
	random := rand.New(rand.NewPCG(11, uint64(history)))
	settings := predict.LiveSettings()
	for round := range rounds {
		train, test, ok := piece(table, random, history, round%2 == 0)
		if !ok {
			continue
		}
		predictions, err := predict.Replay(t.Context(), target, train, test, &settings)
		if err != nil {
			t.Fatal(err)
		}
		for i := range predictions {
			p, v := &predictions[i], test.Outcomes[i].ValueOf(target)
			if v > 0 {
				out = append(out, tried{
					repeats: repeatsOf(&test.Jobs[i], train, test), history: history,
					width: math.Log(p.High / p.Low), inside: p.Low <= v && v <= p.High,
				})
			}
		}
	}
	return out
}

// told is coverage and width of some.
func told(all []tried, which func(*tried) bool) (jobs int, coverage, width float64) {
	var widths []float64
	inside := 0
	for i := range all {
		if !which(&all[i]) {
			continue
		}
		widths = append(widths, all[i].width)
		if all[i].inside {
			inside++
		}
	}
	if len(widths) == 0 {
		return 0, math.NaN(), math.NaN()
	}
	slices.Sort(widths)
	return len(widths), float64(inside) / float64(len(widths)), math.Exp(widths[len(widths)/2])
}

// docs/prediction.md has figures that this prints with -young-rounds=60.
func TestIntervalsOfYoungHistoriesHoldOnTheLogs(t *testing.T) {
	histories := map[int]int{5: 8, 20: 8, 100: 2}
	if n := *youngRounds; n > 0 {
		histories = map[int]int{5: n, 20: n, 100: max(1, n/3), 1000: max(1, n/15)}
	}
	all := make([]tried, 0, 10_000)
	for _, c := range []struct {
		log    string
		target predict.Target
	}{
		{"kth_sp2", predict.Time},
		{"llnl_atlas", predict.Time},
		{"philly_chronus", predict.Time},
		{"synthetic_gpu_history", predict.Time},
		{"synthetic_gpu_history", predict.Energy},
		{"synthetic_gpu_history", predict.Power},
		{"co2_inference_a100", predict.Time},
		{"co2_inference_a100", predict.Energy},
		{"co2_inference_a100", predict.Power},
	} {
		of := make([]tried, 0, 1000)
		for _, history := range []int{5, 20, 100, 1000} {
			of = append(of, tryYoung(t, c.log, c.target, history, histories[history])...)
		}
		jobs, coverage, width := told(of, func(*tried) bool { return true })
		t.Logf("%s %v: %d jobs, %.3f inside, width %.4g", c.log, c.target, jobs, coverage, width)
		all = append(all, of...)
	}
	limits := []int{0, 1, 2, 3, 5, 10, 20, 50, math.MaxInt}
	for i, least := range limits[:len(limits)-1] {
		for _, history := range []int{0, 5, 20, 100, 1000} { // 0: all
			jobs, coverage, width := told(all, func(p *tried) bool {
				return p.repeats >= least && p.repeats < limits[i+1] && (history == 0 || history == p.history)
			})
			t.Logf("run before %d times or more, %d ended: %d jobs, %.3f inside, width %.4g", least, history,
				jobs, coverage, width)
		}
	}
	for history := range histories {
		jobs, coverage, width := told(all, func(p *tried) bool { return p.history == history })
		t.Logf("%d ended: %d jobs, %.3f inside, width %.4g", history, jobs, coverage, width)
	}
	if _, coverage, width := told(all, func(p *tried) bool { return p.repeats > 0 }); coverage < 0.87 ||
		width > 20 {
		t.Errorf("of jobs that were run before %.3f inside, width %.4g, want 0.9, and less than 20",
			coverage, width)
	}
}
