package control

import (
	"math"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/predict"
	"github.com/epplan/epplan/live"
)

func TestAPredictionStaysWithinTheTimeLimitAndWhatTheGPUsCanUse(t *testing.T) {
	r := newRig(t, nil)
	s := script(1000)
	limit := r.limitOf(s.Limit()).Seconds() + killing.Seconds()
	first, _ := r.submitAs(s)
	if high := first.TimeS.High.Or(0); high != limit || first.PowerW.High.Or(0) < 1000 {
		t.Errorf("no GPU model is known: time to %g s, want %g; power %+v, want no bound", high, limit, first.PowerW)
	}
	r.runScript(s, 1, 1)
	again, _ := r.submitAs(s)
	profile, err := r.settings.Load().Profiles.Lookup("V100")
	if err != nil {
		t.Fatal(err)
	}
	if p := again.PowerW; p.Low.Or(0) < float64(profile.IdleW) || p.High.Or(math.Inf(1)) > float64(profile.BusyW) || !(p.Low.Or(0) < p.High.Or(0)) {
		t.Errorf("power %+v, want it within %v to %v W", p, profile.IdleW, profile.BusyW)
	}
	if most := limit * float64(profile.BusyW); again.EnergyJ.High.Or(math.Inf(1)) > most {
		t.Errorf("energy %+v, want %g J at most", again.EnergyJ, most)
	}
}

func TestAnExpectedTimeBeyondTheLimitRemains(t *testing.T) {
	r := newRig(t, nil)
	f := predict.Forecast{predict.Time: {Value: 7200, Low: 7000, High: 7500}, predict.Energy: {Value: 1, Low: 0.5, High: 2}}
	want := f
	if r.possible(&f, &asked{gpus: 1, limit: live.LimitOf(time.Hour)}); f != want {
		t.Errorf("%+v, want %+v: that is what the job would need", f, want)
	}
}

func TestAProfileThatIsNotThatOfTheBoardsBoundsNothing(t *testing.T) {
	r := newRig(t, nil)
	r.runScript(script(1000), 1, 1)
	f := predict.Forecast{predict.Power: {Value: 650, Low: 500, High: 700}, predict.Time: {Value: 10, Low: 5, High: 20}}
	r.possible(&f, &asked{gpus: 1, limit: live.LimitOf(time.Hour)})
	if p := f[predict.Power]; p.Low != 500 || p.High != 700 {
		t.Errorf("%+v, want it as it was: no V100 uses 650 W", p)
	}
}
