package dvfsmodel_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/epplan/epplan/dvfsmodel"
)

func TestIntervalsOfFewSettingsAreAsMuchWiderAsStudentSays(t *testing.T) {
	normal := distuv.Normal{Sigma: 1}.Quantile(dvfsmodel.UpperQuantile)
	if math.Abs(dvfsmodel.UpperSigmas-normal) > 1e-12 {
		t.Errorf("%v standard deviations, want %v", dvfsmodel.UpperSigmas, normal)
	}
	for _, free := range []int{1, 2, 3, 7, 30, 1000, math.MaxInt32} {
		want := distuv.StudentsT{Sigma: 1, Nu: float64(free)}.Quantile(dvfsmodel.UpperQuantile) / normal
		if got := dvfsmodel.StudentWidening(free); math.Abs(got-want) > 1e-6*want {
			t.Errorf("%d degrees of freedom: wider by %v, want %v", free, got, want)
		}
	}
	if dvfsmodel.StudentWidening(0) != dvfsmodel.StudentWidening(1) ||
		dvfsmodel.StudentWidening(-3) != dvfsmodel.StudentWidening(1) {
		t.Error("less than one degree of freedom isn't one")
	}
}

// The ratio of what runs take at two settings is as far off as what they take at one.
func TestADoubtOfARatioIsThatOfOneSetting(t *testing.T) {
	d := dvfsmodel.NewUncertainty(0.02, 0.05, math.MaxInt32)
	mean := math.Sqrt(2 / math.Pi) // of |x| of a standard normal x
	if off := d.Level.Time*mean - 0.02; math.Abs(off) > 1e-4 {
		t.Errorf("a level with a standard deviation of %v is off by %v in the mean, want .02", d.Level.Time,
			d.Level.Time*mean)
	}
	at := d.Clocks(dvfsmodel.Scaling{V: 1, Fc: 0.8, Fm: 1})
	if ratio := math.Hypot((1-d.LevelShare)*d.Level.Power, at.Power); math.Abs(ratio-d.Level.Power) > 1e-9 {
		t.Errorf("a ratio has a standard deviation of %v, want %v", ratio, d.Level.Power)
	}
	if there := math.Hypot(d.LevelShare*d.Level.Power, at.Power); math.Abs(there-d.Level.Power) > 1e-9 {
		t.Errorf("another setting has a standard deviation of %v, want %v", there, d.Level.Power)
	}
}
