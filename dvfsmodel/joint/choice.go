package joint

import (
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
)

// others are what the other applications of a table say of one of them. They saw none of its
// measurements.
type others struct {
	covariance [quantities]covariance
	common     [quantities]*common
}

func (m *model) othersOf(a int) *others {
	o := &others{}
	for q := range m.rest {
		o.covariance[q] = m.rest[q].learnCovariance(a)
		o.common[q], _ = m.rest[q].commonWithout(&o.covariance[q], a)
	}
	return o
}

// predictLeftOut predicts some of an application's settings from a fit to others of its settings: by the fit
// alone, and corrected by its residuals and by the other applications.
func (m *model) predictLeftOut(a int, seen, predicted []int) (own, pooled []outcome, err error) {
	app, o := &m.apps[a], m.others[a]
	f, err := m.fitOne(elementsAt(app.samples, seen))
	if err != nil {
		return nil, nil, err
	}
	fit := curveOf(f)
	own = make([]outcome, len(predicted))
	for k, i := range predicted {
		own[k] = fit(&app.samples[i])
	}
	var rest [quantities][]float64
	energies := energiesOf(app.samples, fit)
	for q := range m.rest {
		if o.common[q] == nil {
			return own, own, nil
		}
		doubt := m.doubtOf(energies, q)
		residuals := &ownResiduals{
			at: elementsAt(
				app.at,
				seen,
			),
			doubt: elementsAt(doubt, seen),
			value: m.residualsOf(elementsAt(app.samples, seen), fit, q),
		}
		rest[q] = m.rest[q].expected(o.common[q], &o.covariance[q], residuals, elementsAt(app.at, predicted),
			elementsAt(doubt, predicted))
	}
	pooled = make([]outcome, len(predicted))
	for k := range predicted {
		pooled[k] = outcome{
			own[k].time + rest[timeError][k], own[k].power + rest[energyError][k] - rest[timeError][k],
		}
	}
	return own, pooled, nil
}

// learnPooling learns what applications say of each other, and for each how much corrections help it.
func (m *model) learnPooling() {
	m.others, m.gain = make([]*others, len(m.apps)), make([]float64, len(m.apps))
	for a := range m.apps {
		m.others[a] = m.othersOf(a)
		m.gain[a] = m.gainOf(a, firstIndexes(len(m.apps[a].samples)))
	}
}

// poolingHelps reports whether an application's fit is corrected by the other applications: whether that
// makes fits better at settings left out, by the gain at these settings of the application and, with the
// same weight, the mean gain of the others. One workload alone shows the difference between both too
// seldom. Where caps differ all are corrected: the model of a capped GPU is too rigid alone.
//
// The settings need not be all of the application: none of the rest takes part in its own gain.
func (m *model) poolingHelps(a int, settings []int) bool {
	if !m.pools || m.capped {
		return m.pools
	}
	gain := m.gainOf(a, settings)
	for b, g := range m.gain {
		if b != a {
			gain += g / float64(len(m.gain)-1)
		}
	}
	return gain >= 0
}

// gainOf returns the logarithm of the errors of an application's own fit over those of the corrected one,
// both at some of its settings that are left out in turn: 0 with too few settings to leave one out.
func (m *model) gainOf(a int, settings []int) float64 {
	if !m.pools || m.capped {
		return 0
	}
	own, pooled, err := m.leftOutErrors(a, settings)
	if err != nil {
		return 0
	}
	least := leastCorrection * float64(len(settings))
	return math.Log((own + least) / (pooled + least))
}

// leftOutErrors returns the summed errors of an application's own fit and of the corrected one at settings
// that are left out in turn, a sixth at a time: |ln predicted − ln measured| of time, power and energy.
func (m *model) leftOutErrors(a int, settings []int) (own, pooled float64, err error) {
	app := &m.apps[a]
	for _, fold := range foldsOf(app.samples, settings) {
		seen := slices.DeleteFunc(slices.Clone(settings), func(i int) bool { return slices.Contains(fold, i) })
		alone, corrected, err := m.predictLeftOut(a, seen, fold)
		if err != nil {
			return 0, 0, err
		}
		for k, i := range fold {
			own += alone[k].errorOf(&app.samples[i])
			pooled += corrected[k].errorOf(&app.samples[i])
		}
	}
	return own, pooled, nil
}

// errorOf returns the sum of the errors of ln time, ln power and ln energy.
func (o outcome) errorOf(s *dvfsmodel.Sample) float64 {
	is := measuredOutcome(s)
	time, power := o.time-is.time, o.power-is.power
	return math.Abs(time) + math.Abs(power) + math.Abs(time+power)
}

// foldsOf divides settings into at most six parts, each across the core and the memory clocks.
func foldsOf(samples []dvfsmodel.Sample, settings []int) [][]int {
	const most = 6
	rank := func(of func(*dvfsmodel.Sample) dvfsmodel.MHz) []dvfsmodel.MHz {
		clocks := make([]dvfsmodel.MHz, len(settings))
		for k, i := range settings {
			clocks[k] = of(&samples[i])
		}
		slices.Sort(clocks)
		return slices.Compact(clocks)
	}
	cores := rank(func(s *dvfsmodel.Sample) dvfsmodel.MHz { return s.Core })
	mems := rank(func(s *dvfsmodel.Sample) dvfsmodel.MHz { return s.Mem })
	folds := make([][]int, most)
	for _, i := range settings {
		core, _ := slices.BinarySearch(cores, samples[i].Core)
		mem, _ := slices.BinarySearch(mems, samples[i].Mem)
		n := (core + mem) % most
		folds[n] = append(folds[n], i)
	}
	return slices.DeleteFunc(folds, func(fold []int) bool { return len(fold) == 0 })
}

// elementsAt lists the elements of a list at these indexes.
func elementsAt[T any](list []T, at []int) []T {
	some := make([]T, len(at))
	for k, i := range at {
		some[k] = list[i]
	}
	return some
}

// firstIndexes lists the first n indexes.
func firstIndexes(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}
