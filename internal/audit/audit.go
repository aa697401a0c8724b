// Package audit estimates what a change to a cluster did to the energy and the run times of its jobs, from
// the jobs before it and after it. It is pure.
package audit

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat/distuv"
)

// Run is a job that ended well and whose energy is known.
type Run struct {
	Kind    string // jobs of one kind do the same work: one program of one user on as many GPUs of a model
	At      time.Time
	Joules  float64
	Seconds float64
	GPUs    float64
}

// Effect is a relative change: -0.1 is a tenth less.
type Effect struct {
	Change float64 `json:"change"`
	Low    float64 `json:"low"` // of its 95 % interval
	High   float64 `json:"high"`
	Kinds  int     `json:"kinds"` // that it rests on; below [LeastKinds] nothing is known
}

// LeastKinds is how many kinds of jobs have to be there before and after.
const LeastKinds = 5

// IsKnown reports whether there are enough kinds of jobs.
func (e *Effect) IsKnown() bool { return e.Kinds >= LeastKinds }

// HasZero reports whether the interval holds no change at all.
func (e *Effect) HasZero() bool { return e.Low <= 0 && e.High >= 0 }

// Period is the runs before the change, or after it.
type Period struct {
	Runs           int       `json:"jobs"`
	Matched        int       `json:"matched_jobs"` // of kinds that ran before and after
	Joules         float64   `json:"energy_j"`
	MatchedJoules  float64   `json:"matched_energy_j"`
	From           time.Time `json:"from"` // the first end
	Until          time.Time `json:"until"`
	GPUHoursPerDay float64   `json:"gpu_hours_per_day"`
	RunsPerDay     float64   `json:"jobs_per_day"`
}

// Result is what can be said of a change.
type Result struct {
	Energy Effect `json:"energy"` // of jobs of the same kinds
	Time   Effect `json:"time"`   // GPU-seconds of the same
	Before Period `json:"before"`
	After  Period `json:"after"`
	// Naive is the change of the mean energy of a job, whatever the jobs were.
	Naive float64 `json:"naive"`
	// Placebo is the effect that the same method finds on energy between the halves of the jobs before, where
	// nothing was changed.
	Placebo Effect `json:"placebo"`
}

// Saved returns by how much less energy the matched jobs after the change used than by the means before, J,
// and the ends of its interval, the lower one first.
func (r *Result) Saved() (joules, low, high float64) {
	of := func(change float64) float64 { return -change / (1 + change) * r.After.MatchedJoules }
	return of(r.Energy.Change), of(r.Energy.High), of(r.Energy.Low)
}

// Split returns the runs that ended before a moment, and those that ended from it on.
func Split(runs []Run, change time.Time) (before, after []Run) {
	for i := range runs {
		if runs[i].At.Before(change) {
			before = append(before, runs[i])
		} else {
			after = append(after, runs[i])
		}
	}
	return before, after
}

// Compare compares the runs after a change with those before it.
func Compare(before, after []Run) Result {
	before = slices.Clone(before)
	slices.SortStableFunc(before, func(a, b Run) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Kind, b.Kind))
	})
	energy := func(r *Run) float64 { return r.Joules }
	out := Result{
		Energy: effectOf(before, after, energy),
		Time:   effectOf(before, after, func(r *Run) float64 { return r.Seconds * r.GPUs }),
		Before: periodOf(before, kindsOf(after)), After: periodOf(after, kindsOf(before)),
	}
	if out.Before.Joules > 0 && out.After.Runs > 0 {
		out.Naive = out.After.Joules/float64(out.After.Runs)/(out.Before.Joules/float64(out.Before.Runs)) - 1
	}
	half := len(before) / 2
	out.Placebo = effectOf(before[:half], before[half:], energy)
	return out
}

func kindsOf(runs []Run) map[string]bool {
	kinds := make(map[string]bool)
	for i := range runs {
		kinds[runs[i].Kind] = true
	}
	return kinds
}

func periodOf(runs []Run, elsewhere map[string]bool) (p Period) {
	seconds := 0.0
	for i := range runs {
		r := &runs[i]
		p.Runs++
		if p.Runs == 1 || r.At.Before(p.From) {
			p.From = r.At
		}
		if r.At.After(p.Until) {
			p.Until = r.At
		}
		p.Joules += r.Joules
		seconds += r.Seconds * r.GPUs
		if elsewhere[r.Kind] {
			p.Matched++
			p.MatchedJoules += r.Joules
		}
	}
	if p.Runs == 0 {
		return p
	}
	const hour, day = 3600, 24
	days := max(p.Until.Sub(p.From).Hours(), 1) / day
	p.GPUHoursPerDay, p.RunsPerDay = seconds/hour/days, float64(p.Runs)/days
	return p
}

// sample is the runs of a kind in a period.
type sample struct{ runs, sum, squares float64 }

func (s *sample) add(x float64) { s.runs, s.sum, s.squares = s.runs+1, s.sum+x, s.squares+x*x }

func (s *sample) mean() float64 { return s.sum / s.runs }

// scatter returns the sum of squares about the mean, relative to its square, and its degrees of freedom.
func (s *sample) scatter() (sum, freedom float64) {
	mean := s.mean()
	return max(0, s.squares/(mean*mean)-s.runs), s.runs - 1
}

// matched is a kind that ran before and after.
type matched struct {
	before, after sample
	expected      float64 // of the runs after, at the mean before
	log, variance float64 // of the ratio of the means, and of what scatter does to it
}

// effectOf returns by how much more the runs after took than they would have with the means of their kinds
// before.
//
// The change is one of sums. Its error has two parts: runs of a kind scatter about their mean, and kinds
// change by themselves, as their inputs do, which no number of runs takes away. How much they do is learnt
// from how far apart kinds are beyond their scatter, after Paule and Mandel. The interval is Student's with
// as many degrees of freedom as there are kinds, less one; it is for work like this, of which these kinds are
// a part.
func effectOf(before, after []Run, of func(r *Run) float64) (e Effect) {
	kinds := matchedKinds(before, after, of)
	if e.Kinds = len(kinds); !e.IsKnown() {
		return e
	}
	expected, actual := 0.0, 0.0
	for i := range kinds {
		expected, actual = expected+kinds[i].expected, actual+kinds[i].after.sum
	}
	own, error2 := betweenKindVariance(kinds), 0.0
	for i := range kinds {
		w := kinds[i].expected / expected
		error2 += w * w * (own + kinds[i].variance)
	}
	whole := math.Log(actual / expected)
	student := distuv.StudentsT{Sigma: 1, Nu: float64(len(kinds) - 1)}
	half := student.Quantile(0.975) * math.Sqrt(error2)
	e.Change, e.Low, e.High = math.Expm1(whole), math.Expm1(whole-half), math.Expm1(whole+half)
	return e
}

// pooledFreedom is for as much as the scatter of all kinds counts beside a kind's own.
const pooledFreedom = 4

// matchedKinds returns the kinds that ran before and after, in order of their names.
func matchedKinds(before, after []Run, of func(r *Run) float64) []matched {
	all := make(map[string]*matched)
	add := func(r *Run, to func(m *matched) *sample) {
		if all[r.Kind] == nil {
			all[r.Kind] = &matched{}
		}
		if x := of(r); x > 0 {
			to(all[r.Kind]).add(x)
		}
	}
	for i := range before {
		add(&before[i], func(m *matched) *sample { return &m.before })
	}
	for i := range after {
		add(&after[i], func(m *matched) *sample { return &m.after })
	}
	var kinds []matched
	sum, freedom := 0.0, 0.0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		m := all[name]
		if m.before.runs == 0 || m.after.runs == 0 {
			continue
		}
		for _, s := range []*sample{&m.before, &m.after} {
			squares, free := s.scatter()
			sum, freedom = sum+squares, freedom+free
		}
		m.expected = m.after.runs * m.before.mean()
		m.log = math.Log(m.after.mean() / m.before.mean())
		kinds = append(kinds, *m)
	}
	pooled := sum / max(1, freedom)
	for i := range kinds {
		m := &kinds[i]
		ofBefore, freeBefore := m.before.scatter()
		ofAfter, freeAfter := m.after.scatter()
		own := (ofBefore + ofAfter + pooledFreedom*pooled) / (freeBefore + freeAfter + pooledFreedom)
		m.variance = own * (1/m.before.runs + 1/m.after.runs)
	}
	return kinds
}

// betweenKindVariance returns the variance by which kinds change by themselves: that with which the
// distances of kinds from their mean, in units of their errors, are what chance has.
func betweenKindVariance(kinds []matched) float64 {
	excess := func(own float64) float64 {
		weights, mean := 0.0, 0.0
		for i := range kinds {
			w := 1 / (own + kinds[i].variance + tiny)
			weights, mean = weights+w, mean+w*kinds[i].log
		}
		mean /= weights
		sum := 0.0
		for i := range kinds {
			d := kinds[i].log - mean
			sum += d * d / (own + kinds[i].variance + tiny)
		}
		return sum - float64(len(kinds)-1)
	}
	if excess(0) <= 0 {
		return 0
	}
	low, high := 0.0, 1.0
	for excess(high) > 0 && high < 1e6 {
		high *= 2
	}
	for range 60 {
		if middle := (low + high) / 2; excess(middle) > 0 {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// tiny keeps kinds whose runs are all alike from weighing without end.
const tiny = 1e-9
