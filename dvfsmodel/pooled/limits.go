package pooled

import (
	"fmt"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/capped"
)

// Limits is what workloads on a GPU model have in common under power limits: how power goes with the
// clock, how sharply the boards keep a limit, and how time goes with the clock that a limit leaves.
type Limits struct {
	prior *capped.Prior
	// top is the clocks and the limit that others are measured by.
	top       dvfsmodel.Setting
	workloads int
}

// Of what workloads have in common under limits: workloads that what is known of GPUs in general counts
// for, and rounds of expectation and maximisation.
const (
	vagueLimits  = 2
	limitsRounds = 3
)

// GeneralLimits returns what is known of GPUs in general, by the highest clocks and the highest limit of a
// GPU model.
func GeneralLimits(top dvfsmodel.Setting) (*Limits, error) {
	if err := top.CheckBase(); err != nil {
		return nil, err
	}
	if !(top.Cap > 0) {
		return nil, fmt.Errorf("a limit of %v W, want a positive number", float64(top.Cap))
	}
	return &Limits{prior: capped.DiffusePrior(), top: top}, nil
}

// LearnLimits learns from the runs of workloads on a GPU model, each under the limit that was in force.
// top is as in [GeneralLimits]. Workloads without runs don't count.
func LearnLimits(workloads [][]dvfsmodel.Sample, top dvfsmodel.Setting) (*Limits, error) {
	l, err := GeneralLimits(top)
	if err != nil {
		return nil, err
	}
	workloads = slices.DeleteFunc(slices.Clone(workloads),
		func(samples []dvfsmodel.Sample) bool { return len(samples) == 0 })
	general, known := l.prior, make([]*capped.Posterior, len(workloads))
	for range limitsRounds {
		for i, samples := range workloads {
			u, err := l.Condition(samples)
			if err != nil {
				return nil, err
			}
			known[i] = u.known
		}
		l = &Limits{
			prior: capped.Pool(known, general, vagueLimits), top: top, workloads: len(workloads),
		}
	}
	return l, nil
}

// Workloads is from how many workloads it was learnt.
func (l *Limits) Workloads() int { return l.workloads }

// UnderLimits is what is known of a workload under power limits after some of its runs. It is immutable.
type UnderLimits struct {
	top      dvfsmodel.Setting
	known    *capped.Posterior
	settings int
	caps     []dvfsmodel.Watt
}

// Condition returns what is known of a workload after runs, each at clocks that were set and under the limit
// that was in force. Runs at one setting are averaged. It returns a [dvfsmodel.SampleError] without samples
// or for one that isn't finite and positive.
func (l *Limits) Condition(samples []dvfsmodel.Sample) (*UnderLimits, error) {
	if len(samples) == 0 {
		return nil, &dvfsmodel.SampleError{Reason: "no samples, want at least one"}
	}
	if err := dvfsmodel.CheckSamples(samples); err != nil {
		return nil, err
	}
	settings := FillSettings([]dvfsmodel.AppSamples{{Samples: samples}}, l.top)[0].Samples
	u := &UnderLimits{top: l.top, settings: len(settings)}
	runs := make([]capped.Run, len(settings))
	for i := range settings {
		s := &settings[i]
		if !(s.Cap > 0) {
			return nil, &dvfsmodel.SampleError{Reason: fmt.Sprintf("a sample under a limit of %v W", float64(s.Cap))}
		}
		runs[i] = capped.Run{
			Conditions: u.conditions(s.At()),
			Outcome:    capped.Outcome{Time: math.Log(s.Time), Power: math.Log(float64(s.Power / l.top.Cap))},
		}
		u.caps = append(u.caps, s.Cap)
	}
	slices.Sort(u.caps)
	u.caps = slices.Compact(u.caps)
	u.known = l.prior.Condition(runs)
	return u, nil
}

func (u *UnderLimits) conditions(at dvfsmodel.Setting) capped.Conditions {
	return capped.Conditions{
		Core: float64(at.Core / u.top.Core), Mem: float64(at.Mem / u.top.Mem), Limit: float64(at.Cap / u.top.Cap),
	}
}

// Fitted returns the most plausible model. Its limits are those of the workload's runs.
func (u *UnderLimits) Fitted() (*dvfsmodel.Fitted, error) {
	params := u.known.Params()
	values := params.Natural()
	list := make([]dvfsmodel.Coefficient, len(values))
	for i, p := range capped.Parameters() {
		list[i] = dvfsmodel.Coefficient{Name: p.Name, Value: values[i]}
		if p.Watts {
			list[i].Value *= float64(u.top.Cap)
		}
	}
	f, err := dvfsmodel.NewFitted(dvfsmodel.CappedForm(), u.top, list)
	if err != nil {
		return nil, err
	}
	f.Settings, f.Caps = u.settings, slices.Clone(u.caps)
	return f, nil
}

// Belief returns what is known of the workload at settings of clocks and limit. extra is power that counts
// with that of the GPU, such as a host's.
func (u *UnderLimits) Belief(settings []dvfsmodel.Setting, extra dvfsmodel.Watt) *Belief {
	n := len(settings)
	g := newGaussian(2 * n)
	g.mean, g.cov = u.joint(settings)
	part := make([]float64, 2*n) // of a relative change of each that is one of what counts
	for i := range settings {
		own := math.Exp(g.mean[n+i]) * float64(u.top.Cap)
		part[i], part[n+i] = 1, own/(own+float64(extra))
		g.mean[n+i] = math.Log(own + float64(extra))
	}
	for i := range part {
		row := g.row(i)
		for k := range row {
			row[k] *= part[i] * part[k]
		}
	}
	return &Belief{settings: slices.Clone(settings), joint: g}
}

func (u *UnderLimits) joint(settings []dvfsmodel.Setting) (mean, cov []float64) {
	at := make([]capped.Conditions, len(settings))
	for i := range settings {
		at[i] = u.conditions(settings[i])
	}
	return u.known.Joint(at)
}

// TimeDeviation returns the largest standard deviation of the logarithm of the run time at settings over that
// at another one.
func (u *UnderLimits) TimeDeviation(settings []dvfsmodel.Setting, over dvfsmodel.Setting) float64 {
	all := append(slices.Clone(settings), over)
	_, cov := u.joint(all)
	last, width := len(all)-1, 2*len(all)
	worst := 0.0
	for i := range settings {
		worst = max(worst, cov[i*width+i]+cov[last*width+last]-2*cov[i*width+last])
	}
	return math.Sqrt(worst)
}

// Power returns what a run most probably draws at a setting.
func (u *UnderLimits) Power(at dvfsmodel.Setting) dvfsmodel.Watt {
	params := u.known.Params()
	return u.top.Cap * dvfsmodel.Watt(math.Exp(params.Board().Predict(u.conditions(at)).Power))
}

// UpperSlowdown returns how many times as long as at another setting a run takes at one, so many standard
// deviations above what is expected.
func (u *UnderLimits) UpperSlowdown(at, than dvfsmodel.Setting, deviations float64) float64 {
	mean, _ := u.joint([]dvfsmodel.Setting{at, than})
	return math.Exp(mean[0] - mean[1] + deviations*u.TimeDeviation([]dvfsmodel.Setting{at}, than))
}

// HighestSetting returns the highest clocks and limit of runs, and at least those of a setting.
func HighestSetting(workloads [][]dvfsmodel.Sample, least dvfsmodel.Setting) dvfsmodel.Setting {
	for _, samples := range workloads {
		for _, s := range samples {
			least = dvfsmodel.Setting{
				Core: max(least.Core, s.Core), Mem: max(least.Mem, s.Mem), Cap: max(least.Cap, s.Cap),
			}
		}
	}
	return least
}
