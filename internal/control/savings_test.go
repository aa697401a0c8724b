//go:build cgo

package control

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
)

// energies records a completed run for each energy.
func (r *rig) energies(workload string, arm record.Arm, joules ...float64) {
	r.t.Helper()
	for i, j := range joules {
		o := &record.Outcome{
			RunID: fmt.Sprintf("%s-%s-%d", workload, arm, i), Workload: workload, GPUModel: "V100", Arm: arm, ExitState: record.Completed,
			GPUEnergyJ: record.Known(j), Ended: start,
		}
		if _, err := r.Record(r.t.Context(), o); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *rig) savings() epdapi.Savings {
	r.t.Helper()
	var s epdapi.Savings
	if status := r.callAs(&ada, http.MethodGet, "/v1/savings", "", &s); status != http.StatusOK {
		r.t.Fatal(status)
	}
	return s
}

func TestSavingsSayHowManyHeldOutRunsAreMissing(t *testing.T) {
	r := newRig(t, func(o *Options) {
		o.Settings = settings(t, "[factors]\ncost_per_kwh = 0.3\ncurrency = \"EUR\"\ncarbon_g_per_kwh = 400\npue = 1.2\n")
	})
	if s := r.savings(); s.Treated != 0 || s.GPU.Needed != 0 || s.GPU.Certain() {
		t.Errorf("nothing: %+v", s)
	}
	r.energies("a", record.Treated, 80, 82, 84)
	if s := r.savings(); s.Treated != 3 || s.Alone != 1 || s.GPU.Runs != 0 || s.GPU.Needed != 2 {
		t.Errorf("nothing held out: %+v", s)
	}
	r.energies("b", record.Treated, 10)
	r.energies("b", record.HeldOut, 11)
	if s := r.savings(); s.Alone != 2 || s.GPU.Needed != 1 {
		t.Errorf("one is missing: %+v", s)
	}
	r.energies("a", record.HeldOut, 70, 120)
	wide := r.savings()
	if wide.GPU.Runs != 3 || wide.GPU.HeldOut != 2 || wide.GPU.SavedJ != 39 || wide.GPU.Certain() || wide.GPU.Needed < 1 {
		t.Errorf("too few: %+v", wide)
	}
	if f := wide.Factors; f.CostPerKWh != 0.3 || f.Currency != "EUR" || f.PUE != 1.2 {
		t.Errorf("factors %+v", f)
	}
	if p := wide.Factors.Of(3.6e6); math.Abs(p.KWh-1.2) > 1e-12 || math.Abs(p.Cost-0.36) > 1e-12 || math.Abs(p.Carbon-480) > 1e-9 || p.Water != 0 {
		t.Errorf("a kilowatt-hour costs %+v", p)
	}
	r.energies("c", record.Treated, 50, 50.1, 50.2, 50.1)
	r.energies("c", record.HeldOut, 400, 400.1, 400.2)
	if s := r.savings(); s.Workloads != 2 || !s.GPU.Certain() || s.GPU.Needed != 0 {
		t.Errorf("enough: %+v", s)
	}
}

// The interval holds the truth as often as it says, also with very few runs.
func TestTheIntervalOfSavingsHoldsTheTruth(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	const trials, truth = 4000, 20.0
	for _, size := range [][2]int{{30, 2}, {4, 3}, {20, 10}} {
		held := 0
		for range trials {
			var sum tally
			sum.add(meanOf(random, size[0], 80), meanOf(random, size[1], 80+truth))
			s := sum.saving()
			if want := truth * float64(size[0]); s.LowJ <= want && want <= s.HighJ {
				held++
			}
		}
		if part := float64(held) / trials; part < 0.935 {
			t.Errorf("%v runs: the truth is within the interval in %.1f %% of the trials", size, 100*part)
		}
	}
}

func TestTheQuantilesAreThoseOfTheTables(t *testing.T) {
	for freedom, want := range map[float64]float64{1: 12.706, 2: 4.303, 5: 2.571, 30: 2.042, 1e6: 1.960} {
		if got := studentsT(freedom); math.Abs(got-want) > 0.0006 {
			t.Errorf("%v degrees of freedom: %v, want %v", freedom, got, want)
		}
	}
}

// meanOf is the mean of energies drawn from a normal distribution.
func meanOf(random *rand.Rand, n int, mean float64) *record.EnergyMean {
	sum, squares := 0.0, 0.0
	for range n {
		x := mean + 5*random.NormFloat64()
		sum, squares = sum+x, squares+x*x
	}
	m := &record.EnergyMean{Runs: int64(n), MeanJ: sum / float64(n)}
	m.VarianceJ2 = (squares - sum*m.MeanJ) / float64(n-1)
	return m
}

func TestSavingsHaveNoTextOfUsers(t *testing.T) {
	r := newRig(t, nil)
	r.energies("evil\x1b[2J", record.Treated, 1, 2)
	if text := string(must(r.savingsText())); strings.Contains(text, "evil") {
		t.Error(text)
	}
}

func (r *rig) savingsText() ([]byte, error) {
	s, err := r.Savings(r.t.Context(), start.AddDate(-1, 0, 0))
	return fmt.Appendf(nil, "%+v", s), err
}
