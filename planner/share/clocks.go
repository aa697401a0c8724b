package share

import (
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner/sharing"
)

// MaxClock leaves every GPU at f_max.
func MaxClock(s *sharing.State, _ int) dvfsmodel.MHz { return s.Instance().Physics.Max() }

// LowestClock returns the lowest level that keeps the SLA of all tasks of a GPU,
// contention counted; f_max where none does.
func LowestClock(s *sharing.State, gpu int) dvfsmodel.MHz { return LowestClockFor(Safe)(s, gpu) }

// LowestClockFor returns the lowest level that keeps what a problem asks for: [LowestClock]
// where contention counts.
func LowestClockFor(problem Problem) Clocks {
	return func(s *sharing.State, gpu int) dvfsmodel.MHz {
		overload := 1.0
		if problem == Safe {
			overload = s.Overload(gpu)
		}
		mhz, _ := s.Instance().Physics.LowestLevel(overload, s.Kappa(gpu))
		return mhz
	}
}

// slackFrom is the part of its limit from which on algorithm 4 leaves a task
// alone.
const slackFrom = 0.95

// AdaptedClock returns where frequency adaptation (algorithm 4) comes to rest when it
// starts from f_max: where a step down would have it step up again, at the
// upper of the two. Its prediction knows no contention.
func AdaptedClock(s *sharing.State, gpu int) dvfsmodel.MHz {
	p, kappas := &s.Instance().Physics, kappasOn(s, gpu)
	mhz := p.Max()
	for {
		next := AdaptStep(p, mhz, kappas)
		if next >= mhz || AdaptStep(p, next, kappas) > next {
			return mhz
		}
		mhz = next
	}
}

// AdaptStep returns one step of algorithm 4 of a GPU whose tasks allow those multiples
// of their times alone at f_max: the next frequency, MHz. One above its limit
// has the GPU go faster; where none is within 5 percent of its own it goes
// slower. A step goes to the first level that is at least StepMHz away.
func AdaptStep(p *sharing.Physics, mhz dvfsmodel.MHz, kappas []float64) dvfsmodel.MHz {
	stretch, slack := p.Stretch(mhz), true
	for _, kappa := range kappas {
		if stretch > kappa {
			return levelAtLeast(p, mhz+p.StepMHz)
		}
		slack = slack && stretch < slackFrom*kappa
	}
	if slack {
		return levelAtMost(p, mhz-p.StepMHz)
	}
	return mhz
}

// levelAtLeast returns the lowest level from a frequency on, at most f_max.
func levelAtLeast(p *sharing.Physics, mhz dvfsmodel.MHz) dvfsmodel.MHz {
	i, _ := slices.BinarySearch(p.LevelsMHz, mhz)
	return p.LevelsMHz[min(i, len(p.LevelsMHz)-1)]
}

// levelAtMost returns the highest level up to a frequency, at least f_min.
func levelAtMost(p *sharing.Physics, mhz dvfsmodel.MHz) dvfsmodel.MHz {
	i, found := slices.BinarySearch(p.LevelsMHz, mhz)
	if !found {
		i--
	}
	return p.LevelsMHz[max(i, 0)]
}

// kappasOn returns what each task of a GPU allows.
func kappasOn(s *sharing.State, gpu int) []float64 {
	kappas := make([]float64, 0, len(s.Tasks(gpu)))
	for _, task := range s.Tasks(gpu) {
		kappas = append(kappas, s.Instance().Tasks[task].Kappa)
	}
	return kappas
}
