package sweep_test

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/epplan/epplan/lab/sweep"
)

type watt float64

type figures struct {
	X     watt
	List  []watt
	None  []int
	Empty []int
	Seed  *uint64
	By    map[string]figures
	Took  time.Duration
	Fixed [2]float64
	Text  string
}

func TestAValueIsTheSameToTheLastBitOnceItWasWritten(t *testing.T) {
	zero, large := uint64(0), uint64(math.MaxUint64)
	in := figures{
		X: watt(math.Copysign(0, -1)), List: []watt{watt(math.Inf(1)), watt(math.Inf(-1)), 0.1 + 0.2, 5e-324},
		Empty: []int{}, Seed: &zero, Took: 1234567 * time.Nanosecond, Fixed: [2]float64{1e300, -1.5},
		By: map[string]figures{"a\x00b\"": {Seed: &large}}, Text: "NaN",
	}
	text, err := sweep.Encode(in)
	if err != nil {
		t.Fatal(err)
	}
	var out figures
	if err := sweep.Decode(text, &out); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if !reflect.DeepEqual(in, out) || !math.Signbit(float64(out.X)) || out.Empty == nil {
		t.Errorf("%+v\nbecame %+v", in, out)
	}
	text, err = sweep.Encode(math.NaN())
	if err != nil {
		t.Fatal(err)
	}
	var x float64
	if err := sweep.Decode(text, &x); err != nil || !math.IsNaN(x) {
		t.Errorf("NaN became %v, %v", x, err)
	}
}

func TestAValueOfWhichAPartWouldBeLostIsRefused(t *testing.T) {
	if text, err := sweep.Encode([]struct{ hidden int }{{1}}); err == nil {
		t.Errorf("a field that isn't exported was left out: %s", text)
	}
}
