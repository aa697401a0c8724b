package pooled_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/pooled"
)

// knownWorkloads are workloads that respond as truths do.
func knownWorkloads(list []truth) []pooled.KnownWorkload {
	all := make([]pooled.KnownWorkload, len(list))
	for i, w := range list {
		all[i].Predict = func(at dvfsmodel.Setting) (float64, dvfsmodel.Watt) {
			s := w.at(at.Core)
			return s.Time, s.Power
		}
	}
	return all
}

func TestItTakesFiveWorkloadsToSayAnythingOfTheNextOne(t *testing.T) {
	if _, err := pooled.NewUnseenWorkload(knownWorkloads(someTruths(1, 4)), base); err == nil {
		t.Error("four workloads are enough")
	}
	idle := knownWorkloads(someTruths(1, 5))
	idle[3].Predict = func(dvfsmodel.Setting) (float64, dvfsmodel.Watt) { return 0, 50 }
	if _, err := pooled.NewUnseenWorkload(idle, base); err == nil {
		t.Error("a workload that takes no time is one")
	}
	u, err := pooled.NewUnseenWorkload(knownWorkloads(someTruths(1, 5)), base)
	if err != nil {
		t.Fatal(err)
	}
	if s := dvfsmodel.DefaultScaling(); u.Time(1, 1) != 1 || u.Power(s) != 1 ||
		u.CommonUncertainty().Clocks(s).Power != 0 || u.OwnUncertainty().Clocks(s).Power != 0 {
		t.Errorf("%v s and %v W at default clocks, want 1 and 1 for certain", u.Time(1, 1), u.Power(s))
	}
	if got := u.Time(1.1, 1); got < 1 {
		t.Errorf("%v s at higher clocks, want no less than 1", got)
	}
}

// nextOne is 1 where the last workload is slower than the others say, where its energy is
// in the interval, and where the mean of all such workloads is in that of the mean.
func nextOne(t *testing.T, list []truth) (slower, inside, near int) {
	t.Helper()
	last := &list[len(list)-1]
	u, err := pooled.NewUnseenWorkload(knownWorkloads(list[:len(list)-1]), base)
	if err != nil {
		t.Fatal(err)
	}
	s := dvfsmodel.Scaling{V: 1, Fc: 0.7, Fm: 1}
	at, def := last.at(700), last.at(1000)
	if at.Time/def.Time > u.Time(s.Fc, s.Fm) {
		slower = 1
	}
	told := math.Log(float64(u.Power(s)) * u.Time(s.Fc, s.Fm))
	common, own := u.CommonUncertainty().Clocks(s).Power, u.OwnUncertainty().Clocks(s).Power
	if off := math.Log(float64(at.Energy()/def.Energy())) -
		told; math.Abs(off) <= dvfsmodel.UpperSigmas*math.Hypot(common, own) {
		inside = 1
	}
	mean := (1.5-0.5)*math.Log(0.7) + math.Log(0.7)*math.Log(0.7)/2
	if math.Abs(mean-told) <= dvfsmodel.UpperSigmas*common {
		near = 1
	}
	return slower, inside, near
}

// TestTheNextWorkloadIsAsFarOffAsIsSaid draws workloads, and looks at the one after the
// first few: whether it is slower than is said, whether its energy is in the interval, and
// whether the mean of many is in that of the mean.
func TestTheNextWorkloadIsAsFarOffAsIsSaid(t *testing.T) {
	const draws = 2000
	for _, count := range []int{5, 8, 20} {
		t.Run(strconv.Itoa(count), func(t *testing.T) {
			random := rand.New(rand.NewPCG(3, uint64(count)))
			var slower, inside, near int
			for range draws {
				list := make([]truth, count+1)
				for i := range list { // normal exponents, as is assumed
					list[i] = truth{
						time:  0.5 + 0.15*random.NormFloat64(),
						power: 1.5 + 0.3*random.NormFloat64(), watts: 100,
					}
				}
				isSlower, isInside, isNear := nextOne(t, list)
				slower, inside, near = slower+isSlower, inside+isInside, near+isNear
			}
			if part := float64(slower) / draws; part < 0.03 || part > 0.07 {
				t.Errorf("%.3f are slower than is said, want .05", part)
			}
			for what, n := range map[string]int{"one": inside, "the mean": near} {
				if part := float64(n) / draws; part < 0.85 || part > 0.95 {
					t.Errorf("the energy of %s is in its interval in %.3f, want .9", what, part)
				}
			}
		})
	}
}

func TestModelsThatAreOffTogetherMakeTheMeanUncertain(t *testing.T) {
	known := knownWorkloads(someTruths(1, 50))
	for i := range known {
		known[i].Uncertainty = dvfsmodel.NewUncertainty(0.1, 0, math.MaxInt32)
	}
	u, err := pooled.NewUnseenWorkload(known, base)
	if err != nil {
		t.Fatal(err)
	}
	sure, err := pooled.NewUnseenWorkload(knownWorkloads(someTruths(1, 50)), base)
	if err != nil {
		t.Fatal(err)
	}
	s := dvfsmodel.Scaling{V: 1, Fc: 0.7, Fm: 1}
	want := math.Hypot(sure.CommonUncertainty().Clocks(s).Power, known[0].Uncertainty.Level.Time/2)
	if got := u.CommonUncertainty().Clocks(s).Power; math.Abs(got-want) > 1e-9 {
		t.Errorf("a standard deviation of %v, want %v", got, want)
	}
	if u.OwnUncertainty().Clocks(s) != sure.OwnUncertainty().Clocks(s) {
		t.Error("workloads differ by the errors of models")
	}
}
