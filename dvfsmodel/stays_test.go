package dvfsmodel_test

import (
	"errors"
	"math"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
)

func TestARunThatWaitsAtAnotherClockTellsExactlyWhatItTakesAtOne(t *testing.T) {
	u, err := dvfsmodel.NewEquivalentRun([]dvfsmodel.ClockResidency{
		// 200 W, and 50 W.
		{Core: 1380, Seconds: 110, Work: 100, Energy: 20_500, Rest: 5, RestEnergy: 250, Begun: 1},
		{Core: 600, Seconds: 90, Energy: 2700, Rest: 80, RestEnergy: 2400}, // 30 W
	}, 200)
	if err != nil {
		t.Fatal(err)
	}
	if want := 20_500 + 90*50.0; u.Core != 1380 ||
		u.Time != (dvfsmodel.Estimate{Guess: 200, Low: 200, High: 200}) ||
		math.Abs(u.Energy.Guess-want) > 1e-9 || u.Energy.RelativeBound() > 1e-9 {
		t.Errorf("%+v, want 200 s and %v J", u, want)
	}
}

func TestARunThatWorksAtTwoClocksIsInDoubt(t *testing.T) {
	stays := []dvfsmodel.ClockResidency{
		{Core: 1200, Seconds: 100, Work: 100, Energy: 20_000, Begun: 1},
		{Core: 600, Seconds: 100, Work: 100, Energy: 10_000, Begun: 1},
	}
	u, err := dvfsmodel.NewEquivalentRun(stays, 200)
	if err != nil {
		t.Fatal(err)
	}
	// At 1200 MHz the work at 600 takes 50 to 100 s, and half to eight times as much.
	if u.Core != 1200 || u.Time != (dvfsmodel.Estimate{Guess: 175, Low: 150, High: 200}) ||
		u.Energy.Low != 25_000 || u.Energy.High != 100_000 {
		t.Errorf("%+v", u)
	}
}

func TestARestThatWasTooShortIsBoundedByTheOthers(t *testing.T) {
	u, err := dvfsmodel.NewEquivalentRun([]dvfsmodel.ClockResidency{
		{Core: 1200, Seconds: 100, Work: 90, Energy: 18_400, Begun: 1},
		{Core: 600, Seconds: 100, Energy: 3000, Rest: 50, RestEnergy: 1500},
	}, 200)
	// Waiting at 1200 MHz draws 30 W at least, and at most what all of it did there.
	if err != nil || u.Core != 1200 || u.Energy.Low != 18_400+3000 || u.Energy.High != 18_400+18_400 {
		t.Errorf("%+v, %v", u, err)
	}
}

func TestTheSecondsOfStaysAreAddedUp(t *testing.T) {
	if got := dvfsmodel.ResidencySeconds(nil); got != 0 {
		t.Errorf("of no stays: %g s", got)
	}
	if got := dvfsmodel.ResidencySeconds([]dvfsmodel.ClockResidency{
		{Core: 1000, Seconds: 20, Work: 3},
		{Core: 600, Seconds: 0.5},
	}); got != 20.5 {
		t.Errorf("%g s, want 20.5 s", got)
	}
}

func TestStaysThatCannotBeTellNothing(t *testing.T) {
	for name, stays := range map[string][]dvfsmodel.ClockResidency{
		"none":       nil,
		"no clock":   {{Seconds: 1, Energy: 1}},
		"no energy":  {{Core: 1200, Seconds: 1}},
		"negative":   {{Core: 1200, Seconds: 1, Energy: 1, Work: -1}},
		"infinite":   {{Core: 1200, Seconds: math.Inf(1), Energy: 1}},
		"not begun":  {{Core: 1200, Seconds: 1, Energy: 1, Begun: -1}},
		"no numbers": {{Core: 1200, Seconds: math.NaN(), Energy: 1}},
	} {
		if u, err := dvfsmodel.NewEquivalentRun(stays, 1); !errors.Is(err, dvfsmodel.ErrSamples) {
			t.Errorf("%s: %+v, %v", name, u, err)
		}
	}
}
