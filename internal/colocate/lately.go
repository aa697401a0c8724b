package colocate

import (
	"fmt"
	"math"
	"strings"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/epplan/epplan/planner/sharing"
	"github.com/epplan/epplan/slurm"
)

// UseSample is how much of a GPU was in use at a moment, from 0 to 1.
type UseSample struct {
	At  time.Time
	Use float64
}

const (
	// minSamples is how many it takes for anything to follow from their mean, and
	// twice as many from their order.
	minSamples = 8
	// minCorrelation is a correlation from which on a GPU does the opposite of what is
	// recorded: where it does something else, the means tell.
	minCorrelation = -0.5
)

// recentUse is what a GPU did at some moments, and what the jobs on it were recorded
// to do then: kernels of several may run at once or in turn, so that it is at
// least the busiest one's utilisation, and at most the sum of all.
type recentUse struct{ use, least, most []float64 }

// recentUseOf lays samples over the profiles of the jobs on a GPU. Samples from
// before one of them began, or of what can't be, are left out.
func recentUseOf(at time.Time, samples []UseSample, on []futureUse) recentUse {
	var r recentUse
	for _, s := range samples {
		least, sum := 0.0, 0.0
		for i := range on {
			u := on[i].pastUtilisation(at.Sub(s.At).Seconds())
			least, sum = max(least, u), sum+u
		}
		if s.Use >= 0 && s.Use <= 1 && sum >= 0 { // not where it is NaN
			r.use, r.least, r.most = append(r.use, s.Use), append(r.least, least), append(r.most, min(1, sum))
		}
	}
	return r
}

// pastUtilisation returns a job's utilisation so many seconds ago by its profile, NaN if it hadn't
// begun.
func (u *JobUse) pastUtilisation(secondsAgo float64) float64 {
	slot := (u.DoneS - secondsAgo*u.Rate) / u.Profile.TimeS.Mean * float64(len(u.Profile.Mean))
	if !(slot >= 0 && slot < float64(len(u.Profile.Mean))) {
		return math.NaN()
	}
	return u.Profile.Mean[int(slot)]
}

// deviation says in which way a GPU did other than recorded by more than a spread;
// empty: it didn't, or too little was seen.
func (r *recentUse) deviation(spread float64) string {
	if len(r.use) < minSamples {
		return ""
	}
	if excessOver(r.use, r.most) > spread || excessOver(r.least, r.use) > spread {
		low, high := percent(r.least), percent(r.most)
		recorded := fmt.Sprintf("%.0f %%", high)
		if math.Round(low) != math.Round(high) {
			recorded = fmt.Sprintf("%.0f to %.0f %%", low, high)
		}
		return fmt.Sprintf("was in use %.0f %% of the time lately, %s by their profiles",
			percent(r.use), recorded)
	}
	if len(r.use) < 2*minSamples || floats.Max(r.most)-floats.Min(r.most) < minVariation {
		return ""
	}
	if c := sharing.Pearson(r.use, r.most); c.R <= minCorrelation {
		return fmt.Sprintf("was at work lately when it wouldn't be by their profiles (correlation %.2f)", c.R)
	}
	return ""
}

// excessOver is by how much values are above others on average, at least: the lower
// end of the interval of that mean, 90 %, by Student's distribution.
func excessOver(values, others []float64) float64 {
	difference := make([]float64, len(values))
	floats.SubTo(difference, values, others)
	mean, deviation := stat.MeanStdDev(difference, nil)
	n := float64(len(values))
	const upper = 0.95
	return mean - distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile(upper)*deviation/math.Sqrt(n)
}

func percent(values []float64) float64 { return 100 * stat.Mean(values, nil) }

// recentDeviation says how a GPU did lately other than the jobs on it were recorded to
// do; empty: it didn't, or that isn't known.
func (o *Options) recentDeviation(at time.Time, node string, jobs []*slurm.Job, on []futureUse) string {
	if o.RecentSamples == nil || len(jobs) == 0 {
		return ""
	}
	ids, names := make([]slurm.JobID, len(jobs)), make([]string, len(jobs))
	for i, j := range jobs {
		ids[i], names[i] = j.ID, j.ID.String()
	}
	r := recentUseOf(at, o.RecentSamples(node, ids), on)
	switch why := r.deviation(o.Rules.Spread); {
	case why == "":
		return ""
	case len(jobs) == 1:
		return "job " + names[0] + ": its GPU " + why
	default:
		return "jobs " + strings.Join(names, ", ") + ": their GPU " + why
	}
}
