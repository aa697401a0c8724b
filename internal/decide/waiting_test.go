package decide

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// TestAJobIsSlowedForNoMoreThanItsWaitersAreWorth chooses for drawn jobs with and without waiters, and
// holds each choice against the formula, summed up by hand over all clocks that the job may have.
func TestAJobIsSlowedForNoMoreThanItsWaitersAreWorth(t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 7))
	from := newPool(t, rng, 40)
	faster := 0
	for range cases(2000) {
		a := from.draw(rng)
		a.objective, a.timeWeight = "energy", 0
		weight, waited := 400*rng.Float64(), []float64{0, 0.25, 1, 5}[rng.IntN(4)]
		decided := func(weight, waited float64) (*chooser, *live.Decision) {
			price := fmt.Sprintf("wait_weight = %v\n", weight)
			text := strings.Replace(a.configuration(), "time_weight = 0\n", price, 1)
			ch := a.chooser(t, text)
			ch.backlog = waited
			ch.choose(&slurm.Wishes{Deadline: ch.decision.Wish.Deadline})
			return ch, ch.decision
		}
		_, alone := decided(0, 0)
		ch, d := decided(weight, waited)
		if waited == 0 {
			want, err := json.Marshal(alone)
			if got, err2 := json.Marshal(d); err != nil || err2 != nil || !bytes.Equal(got, want) {
				t.Fatalf("nobody waits: %s\nwant %s", got, want)
			}
			continue
		}
		if d.Predicted.Or(0) > alone.Predicted.Or(0)*(1+1e-9) {
			t.Fatalf("with waiters it takes %v, without %v: %v", d.Predicted, alone.Predicted, a)
		}
		if d.Predicted.Or(0) < alone.Predicted.Or(0)*(1-1e-9) {
			faster++
		}
		cost := func(at dvfsmodel.Setting) float64 {
			pt := ch.safe.At(at.Core, at.Mem)
			return float64(pt.Energy) + pt.Time*(float64(a.profile.HostW)+weight*waited)
		}
		budget, _ := ch.timeBudget()
		least := math.Inf(1)
		for _, at := range append([]dvfsmodel.Setting{a.profile.Default}, ch.safe.Settings...) {
			if pt := ch.safe.At(at.Core, at.Mem); ch.safe.Admits(&pt, budget) {
				least = min(least, cost(at))
			}
		}
		if chosen := cost(a.setting(d)); !math.IsInf(least, 1) && chosen > least*(1+1e-9) {
			t.Fatalf("%s costs %v, the cheapest %v: %v", d.Words(), chosen, least, a)
		}
	}
	if faster == 0 {
		t.Error("waiters never made a difference")
	}
}
