package sharing

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/epplan/epplan/dvfsmodel"
)

// Physics is how a GPU's power and a task's time respond to its frequency.
type Physics struct {
	BaseW     float64         // power of a GPU that is on, without the part by frequency, watts (P_gs)
	WPerMHz   float64         // power by frequency, watts by MHz (alpha, eq. 3)
	Beta      float64         // t(f) = t_min (f_max/f)^Beta (eq. 5)
	LevelsMHz []dvfsmodel.MHz // frequencies that can be set, ascending; the last one is f_max
	StepMHz   dvfsmodel.MHz   // step of frequency adaptation (algorithm 4)
}

// Max is f_max, the highest frequency.
func (p *Physics) Max() dvfsmodel.MHz { return p.LevelsMHz[len(p.LevelsMHz)-1] }

// PowerAt returns what a GPU that is on draws at a frequency, watts (eq. 3).
func (p *Physics) PowerAt(mhz dvfsmodel.MHz) float64 { return p.BaseW + p.WPerMHz*float64(mhz) }

// Stretch returns how much longer than at f_max anything takes at a frequency,
// (f_max/f)^Beta (eq. 5).
func (p *Physics) Stretch(mhz dvfsmodel.MHz) float64 {
	return math.Pow(float64(p.Max()/mhz), p.Beta)
}

// Tolerance is by how much a slowdown may exceed what a task allows before it
// counts as a violation.
const Tolerance = 1e-7

// LowestLevel returns the lowest level at which what takes overload times as long at
// f_max takes at most kappa times as long; f_max and false where none does.
func (p *Physics) LowestLevel(overload, kappa float64) (mhz dvfsmodel.MHz, ok bool) {
	level := sort.Search(len(p.LevelsMHz), func(i int) bool {
		return overload*p.Stretch(p.LevelsMHz[i]) <= kappa+Tolerance
	})
	if level == len(p.LevelsMHz) {
		return p.Max(), false
	}
	return p.LevelsMHz[level], true
}

// Validate reports the first thing that makes no sense of frequencies, power or
// run time.
func (p *Physics) Validate() error {
	if len(p.LevelsMHz) == 0 || !(p.LevelsMHz[0] > 0) || !slices.IsSorted(p.LevelsMHz) ||
		math.IsInf(float64(p.Max()), 0) {
		return fmt.Errorf("frequencies %v MHz, want at least one, ascending and above 0", p.LevelsMHz)
	}
	for _, x := range [...]float64{p.BaseW, p.WPerMHz, p.Beta} {
		if !isNotNegative(x) {
			return fmt.Errorf("power %v W + %v W/MHz and exponent %v, want finite numbers of 0 or more",
				p.BaseW, p.WPerMHz, p.Beta)
		}
	}
	return nil
}

// PaperPhysics returns the paper's V100: power of eq. 3, time of eq. 5, and levels
// from 135 to 1350 MHz. The paper doesn't give its step; 45 MHz is that of
// data/cats.
func PaperPhysics() Physics {
	const lowest, highest, step = 135, 1350, 45
	p := Physics{BaseW: 23.3, WPerMHz: 0.09, Beta: 0.91, StepMHz: step}
	for mhz := lowest; mhz <= highest; mhz += step {
		p.LevelsMHz = append(p.LevelsMHz, dvfsmodel.MHz(mhz))
	}
	return p
}

// PaperSLA is how many times its time alone at f_max a task may take (section
// 2.1.2).
const PaperSLA = 1.2
