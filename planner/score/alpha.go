package score

import "github.com/epplan/epplan/planner/fleet"

// AutoAlpha weighs the two parts of a rule, PWR and FGD, by how full the
// cluster is: power matters while there is room, fragmentation when room gets
// scarce. Full is the share of the GPU capacity that is allocated out of what
// the expected tasks could use, so that fragmentation counts as well.
type AutoAlpha struct {
	meter    *fleet.FragmentationMeter
	measured int64   // milli-GPU allocated when alpha was set
	alpha    float64 // PWR's part of the weight
	known    bool
}

// NewAutoAlpha measures fragmentation for a target workload.
func NewAutoAlpha(m fleet.Workload) *AutoAlpha {
	return &AutoAlpha{meter: fleet.NewFragmentationMeter(m)}
}

// alphaSteps are PWR's parts of the weight up to each fullness. The paper's fixed
// α, 0.1, is what a cluster gets that is 70 to 90 % full.
var alphaSteps = [...]struct{ below, alpha float64 }{{0.3, 0.5}, {0.7, 0.2}, {0.9, 0.1}}

// lastAlpha is PWR's part above all steps.
const lastAlpha = 0.02

// Weigh measures again when 1 % of the capacity has come or gone.
func (a *AutoAlpha) Weigh(s *fleet.State, weights []float64) {
	moved := s.Allocated() - a.measured
	if !a.known || max(moved, -moved)*100 > s.Capacity() {
		a.measured, a.known = s.Allocated(), true
		a.alpha = alphaAt(fullness(s, a.meter))
	}
	weights[0], weights[1] = weightOfAll*a.alpha, weightOfAll-weightOfAll*a.alpha
}

// weightOfAll is the weight of both parts together, as in the PWR+FGD paper's rules.
const weightOfAll = 1000

// fullness returns the part of the usable GPU capacity that is allocated.
func fullness(s *fleet.State, meter *fleet.FragmentationMeter) float64 {
	fragmented := 0.0
	for i := range s.Len() {
		fragmented += meter.OfNode(s.Node(i))
	}
	allocated := float64(s.Allocated())
	usable := float64(s.Capacity()) - fragmented
	if allocated >= usable {
		return 1
	}
	return allocated / usable
}

// alphaAt is PWR's part of the weight at a fullness.
func alphaAt(full float64) float64 {
	for _, step := range alphaSteps {
		if full < step.below {
			return step.alpha
		}
	}
	return lastAlpha
}
