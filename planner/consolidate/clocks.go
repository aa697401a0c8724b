package consolidate

import "slices"

// AtMax leaves every GPU at f_max.
func AtMax(s *State, _ int) float64 { return s.in.Physics.MaxMHz() }

// LowestKept is the lowest level that keeps the SLA of all tasks of a GPU,
// contention counted; f_max where none does.
func LowestKept(s *State, gpu int) float64 { return LowestFor(Safe)(s, gpu) }

// LowestFor is the lowest level that keeps what a problem asks for: [LowestKept]
// where contention counts.
func LowestFor(problem Problem) Clocks {
	return func(s *State, gpu int) float64 {
		mhz, _ := s.in.Lowest(problem, s.Load(gpu), s.Kappa(gpu), s.contention(gpu, nil))
		return mhz
	}
}

// slackFrom is the part of its limit from which on algorithm 4 leaves a task
// alone.
const slackFrom = 0.95

// Adapted is where frequency adaptation (algorithm 4) comes to rest when it
// starts from f_max: where a step down would have it step up again, at the
// upper of the two. Its prediction knows no contention.
func Adapted(s *State, gpu int) float64 {
	p, kappas := &s.in.Physics, s.kappas(gpu)
	mhz := p.MaxMHz()
	for {
		next := Adapt(p, mhz, kappas)
		if next >= mhz || Adapt(p, next, kappas) > next {
			return mhz
		}
		mhz = next
	}
}

// Adapt is one step of algorithm 4 of a GPU whose tasks allow those multiples
// of their times alone at f_max: the next frequency, MHz. One above its limit
// has the GPU go faster; where none is within 5 percent of its own it goes
// slower. A step goes to the first level that is at least StepMHz away.
func Adapt(p *Physics, mhz float64, kappas []float64) float64 {
	stretch, slack := p.Stretch(mhz), true
	for _, kappa := range kappas {
		if stretch > kappa {
			return p.above(mhz + p.StepMHz)
		}
		slack = slack && stretch < slackFrom*kappa
	}
	if slack {
		return p.below(mhz - p.StepMHz)
	}
	return mhz
}

// above is the lowest level from a frequency on, at most f_max.
func (p *Physics) above(mhz float64) float64 {
	i, _ := slices.BinarySearch(p.LevelsMHz, mhz)
	return p.LevelsMHz[min(i, len(p.LevelsMHz)-1)]
}

// below is the highest level up to a frequency, at least f_min.
func (p *Physics) below(mhz float64) float64 {
	i, found := slices.BinarySearch(p.LevelsMHz, mhz)
	if !found {
		i--
	}
	return p.LevelsMHz[max(i, 0)]
}

// kappas is what each task of a GPU allows.
func (s *State) kappas(gpu int) []float64 {
	kappas := make([]float64, 0, len(s.tasks[gpu]))
	for _, task := range s.tasks[gpu] {
		kappas = append(kappas, s.in.Tasks[task].Kappa)
	}
	return kappas
}
