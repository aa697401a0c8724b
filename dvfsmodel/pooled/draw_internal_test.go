package pooled

import (
	"math"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
)

func TestDrawsDifferByWorkloadAndBySeedAndAreRepeatable(t *testing.T) {
	w := func(seed uint64, kind string) float64 {
		return (&ResponseDraw{Seed: seed}).Weights(kind, "V100")[3]
	}
	if w(1, "a") != w(1, "a") || w(1, "a") == w(1, "b") || w(1, "a") == w(2, "a") {
		t.Error("draws aren't what they should be")
	}
	if (*ResponseDraw)(nil).Weights("a", "V100") != nil {
		t.Error("what is expected has weights")
	}
}

func TestTheSpreadOfDrawsIsThatOfThePrior(t *testing.T) {
	prior, err := NewResponsePrior(dvfsmodel.Setting{Core: 1380, Mem: 877})
	if err != nil {
		t.Fatal(err)
	}
	const draws = 4000
	var sum, squares float64
	for seed := range uint64(draws) {
		w := (&ResponseDraw{Seed: seed}).Weights("k", "V100")
		v := 0.0
		for j := range 2 { // time.log_fc is the second coefficient
			v += prior.factor.At(1, j) * w[j]
		}
		sum, squares = sum+v, squares+v*v
	}
	want := math.Hypot(prior.factor.At(1, 0), prior.factor.At(1, 1))
	if got := math.Sqrt(squares/draws - sum*sum/draws/draws); math.Abs(got/want-1) > 0.05 {
		t.Errorf("standard deviation %v, want %v", got, want)
	}
}
