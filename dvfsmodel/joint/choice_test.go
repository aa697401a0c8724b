package joint

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// drawSparse returns 2 to 5 applications on a GPU that nobody measured, at 8 to 25 core and memory clocks,
// and their exact energies: computing and moving of data overlap in part, kernels take some time to be
// launched, the voltage is flat up to a knee, clocks have steps that all applications share, and time and
// power of single runs scatter by 1 to 3 %.
func drawSparse(rng *rand.Rand) (apps []dvfsmodel.AppSamples, exact [][]float64) {
	between := func(low, high float64) float64 { return low + (high-low)*rng.Float64() }
	mems := 1 + rng.IntN(5)
	cores := max(3, (8+mems-1)/mems)
	cores += rng.IntN(25/mems - cores + 1)
	lowCore, lowMem := between(0.45, 0.85), between(0.5, 0.8)
	knee, rise, static := between(0.55, 0.9), between(0.3, 1.5), between(20, 80)
	noise, stepped := between(0.01, 0.03), between(0, 0.01)
	steps := make([]float64, cores)
	for i := range steps {
		steps[i] = math.Exp(stepped * rng.NormFloat64())
	}
	for a := range 2 + rng.IntN(4) {
		moved, launch, overlap := between(0.3, 3), between(0, 0.25), math.Exp2(between(1, 3))
		core, memory := between(60, 180), between(10, 70)
		app := dvfsmodel.AppSamples{App: fmt.Sprint("app ", a)}
		energies := make([]float64, 0, cores*mems)
		for i := range cores {
			for k := range mems {
				fc := lowCore + (1-lowCore)*float64(i)/float64(cores-1)
				fm := lowMem + (1-lowMem)*float64(k+1)/float64(mems)
				computing, moving := 1/fc, moved/fm
				seconds := launch + math.Pow(math.Pow(computing, overlap)+math.Pow(moving, overlap), 1/overlap)
				volts := 1 + rise*max(0, fc-knee)
				power := static + memory*fm*(0.4+0.6*moving/seconds) +
					core*(0.35+0.65*computing/seconds)*fc*volts*volts*steps[i]
				energies = append(energies, seconds*power)
				app.Samples = append(app.Samples, dvfsmodel.Sample{
					Core: dvfsmodel.MHz(1500 * fc), Mem: dvfsmodel.MHz(5000 * fm),
					Time:  seconds * math.Exp(noise*rng.NormFloat64()),
					Power: dvfsmodel.Watt(power * math.Exp(noise*rng.NormFloat64())),
				})
			}
		}
		apps, exact = append(apps, app), append(exact, energies)
	}
	return apps, exact
}

func fitDrawn(t *testing.T, apps []dvfsmodel.AppSamples) *model {
	t.Helper()
	table, err := newTable(apps, dvfsmodel.Setting{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := table.fitAll()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Over a table, in the geometric mean of its applications, errors at settings left out are never above
// those of own fits.
func TestCorrectedFitsAreNeverWorseAtSettingsLeftOutThanOwnFits(t *testing.T) {
	corrected, alone := 0, 0
	for seed := range uint64(20) {
		apps, _ := drawSparse(rand.New(rand.NewPCG(seed, 11)))
		m := fitDrawn(t, apps)
		gain := 0.0
		for a := range m.apps {
			if m.poolingHelps(a, firstIndexes(len(m.apps[a].samples))) {
				gain += m.gain[a]
				corrected++
			} else {
				alone++
			}
		}
		if gain < 0 {
			t.Errorf("seed %d: the errors of the table are %.3f times those of own fits", seed, math.Exp(-gain))
		}
	}
	if corrected == 0 || alone == 0 {
		t.Errorf("%d applications are corrected and %d aren't, want some of each", corrected, alone)
	}
}

// What is measured at a setting has no part in an application's gain at the other ones.
func TestASettingThatIsLeftOutIsNotSeenByTheChoice(t *testing.T) {
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 12))
		apps, _ := drawSparse(rng)
		a := rng.IntN(len(apps))
		i := rng.IntN(len(apps[a].Samples))
		rest := without(firstIndexes(len(apps[a].Samples)), i)
		before := fitDrawn(t, apps).gainOf(a, rest)
		apps[a].Samples = slices.Clone(apps[a].Samples)
		apps[a].Samples[i].Time *= 1.2
		apps[a].Samples[i].Power *= 0.7
		if after := fitDrawn(t, apps).gainOf(a, rest); math.Abs(after-before) > 1e-9 {
			t.Errorf("seed %d: a gain of %v, and %v with another measurement at the setting left out", seed, before,
				after)
		}
	}
}

// Single runs scatter, and the least measured energy is that of a lucky run: nobody who hasn't seen it
// chooses it. By what settings really take, choices without seeing a setting cost below a per cent.
func TestChoicesOnSparseNoisyTablesCostLittleByWhatSettingsReallyTake(t *testing.T) {
	var measured, lucky, truly, full, own, applications float64
	for seed := range shareddata.Rounds[uint64](6, 6, 15) {
		apps, exact := drawSparse(rand.New(rand.NewPCG(seed, 13)))
		m := fitDrawn(t, apps)
		for a := range m.apps {
			n := len(m.apps[a].samples)
			e, err := m.evaluate(a, &Options{Slowdown: math.Inf(1)})
			if err != nil {
				t.Fatal(err)
			}
			left, alone, choice := make([]float64, n), make([]float64, n), m.predictionsOf(n)
			for i := range n {
				rest := without(firstIndexes(n), i)
				ownAt, pooledAt, err := m.predictLeftOut(a, rest, []int{i})
				if err != nil {
					t.Fatal(err)
				}
				alone[i], left[i] = ownAt[0].quantity(energyError), ownAt[0].quantity(energyError)
				if m.poolingHelps(a, rest) {
					left[i] = pooledAt[0].quantity(energyError)
				}
				choice.set(i, m.own[a](&m.apps[a].samples[i]))
			}
			if e.Pooled {
				choice, _ = m.smooth(a, choice)
			}
			runs := make([]float64, n)
			for i, s := range m.apps[a].samples {
				runs[i] = float64(s.Energy())
			}
			applications++
			measured += e.LOSO.Mean
			lucky += excess(exact[a], runs)
			truly += excess(left, exact[a])
			own += excess(alone, exact[a])
			full += excess(choice[energyError], exact[a])
		}
	}
	percent := func(sum float64) float64 { return 100 * sum / applications }
	t.Logf("settings left out: %.2f %% above the least measured energy, where who knows the truth is "+
		"%.2f %% above; by the truth %.2f %% (own fits %.2f %%), and %.2f %% with all settings",
		percent(measured), percent(lucky), percent(truly), percent(own), percent(full))
	if percent(truly) > 1 || percent(full) > 0.7 || truly > own*1.05 {
		t.Errorf("by the truth %.2f %% with settings left out and %.2f %% with all, own fits %.2f %%",
			percent(truly), percent(full), percent(own))
	}
}

// excess returns how much more the setting of the least cost takes than the best one.
func excess(cost, energy []float64) float64 {
	return energy[slices.Index(cost, slices.Min(cost))]/slices.Min(energy) - 1
}
