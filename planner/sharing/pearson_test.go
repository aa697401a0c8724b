package sharing

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

var (
	nan = math.NaN()
	inf = math.Inf(1)
)

// walk returns a utilisation series: a random walk between 0 and 100 percent.
func walk(seed uint64, n int) []float64 {
	r := rand.New(rand.NewPCG(seed, 1))
	s := make([]float64, n)
	level := 50.0
	for i := range s {
		level = min(100, max(0, level+4*r.NormFloat64()))
		s[i] = level
	}
	return s
}

// sample draws values whose differences a float64 holds exactly, now and then
// a gap or the same value again and again.
func sample() *rapid.Generator[float64] {
	return rapid.OneOf(
		rapid.Map(rapid.IntRange(0, 800), func(i int) float64 { return float64(i) / 8 }),
		rapid.Map(rapid.IntRange(0, 1), func(i int) float64 { return float64(100 * i) }),
		rapid.SampledFrom([]float64{50, 50, 50, nan, inf}),
	)
}

// oracle returns the textbook's coefficient, in two passes over the samples without
// gaps.
func oracle(x, y []float64) Correlation {
	var px, py []float64
	n := min(len(x), len(y))
	for i := range n {
		if !math.IsNaN(x[i]) && !math.IsNaN(y[i]) && !math.IsInf(x[i], 0) && !math.IsInf(y[i], 0) {
			px, py = append(px, x[i]), append(py, y[i])
		}
	}
	r := Correlation{Samples: len(px), Gaps: n - len(px)}
	if len(px) == 0 || slices.Min(px) == slices.Max(px) || slices.Min(py) == slices.Max(py) {
		return r
	}
	var mx, my, xx, yy, xy float64
	for i := range px {
		mx, my = mx+px[i]/float64(len(px)), my+py[i]/float64(len(px))
	}
	for i := range px {
		xx, yy, xy = xx+(px[i]-mx)*(px[i]-mx), yy+(py[i]-my)*(py[i]-my), xy+(px[i]-mx)*(py[i]-my)
	}
	r.R, r.OK = xy/math.Sqrt(xx*yy), true
	return r
}

// agree reports whether two results are the same up to rounding.
func agree(a, b Correlation, digits float64) bool {
	return a.OK == b.OK && a.Samples == b.Samples && a.Gaps == b.Gaps && math.Abs(a.R-b.R) <= digits
}

func TestPearsonIsTheTextbooksCoefficient(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(sample(), 0, 1300).Draw(t, "x")
		y := rapid.SliceOfN(sample(), 0, 1300).Draw(t, "y")
		if got, want := Pearson(x, y), oracle(x, y); !agree(got, want, 1e-11) {
			t.Fatalf("%+v, by the textbook %+v", got, want)
		}
	})
}

func TestWhatPearsonDoesWithSeriesThatArentPlain(t *testing.T) {
	for name, c := range map[string]struct {
		x, y []float64
		want Correlation
	}{
		"rising together": {
			[]float64{1, 2, 3}, []float64{10, 20, 30}, Correlation{R: 1, OK: true, Samples: 3},
		},
		"one against the other": {
			[]float64{1, 2, 3}, []float64{3, 2, 1}, Correlation{R: -1, OK: true, Samples: 3},
		},
		"cut to the shorter": {
			[]float64{1, 2, 3, 99, 0}, []float64{10, 20, 30}, Correlation{R: 1, OK: true, Samples: 3},
		},
		"nothing":         {nil, []float64{1, 2}, Correlation{}},
		"a single sample": {[]float64{1}, []float64{2}, Correlation{Samples: 1}},
		"a constant side": {[]float64{.1, .1, .1}, []float64{1, 2, 3}, Correlation{Samples: 3}},
		"constant beside gaps": {
			[]float64{.1, nan, .1, 7}, []float64{1, 2, 3, nan}, Correlation{Samples: 2, Gaps: 2},
		},
		"a gap counts for both": {
			[]float64{1, nan, 3, 4}, []float64{1, 2, inf, 4}, Correlation{R: 1, OK: true, Samples: 2, Gaps: 2},
		},
		"gaps only":                         {[]float64{nan, inf, 1}, []float64{1, 1, -inf}, Correlation{Gaps: 3}},
		"deviations out of a float's range": {[]float64{-1e200, 1e200}, []float64{1, 2}, Correlation{Samples: 2}},
		"deviations too small for a float": {
			[]float64{-1e-200, 1e-200}, []float64{1, 2}, Correlation{Samples: 2},
		},
		"sums out of a float's range": {
			slices.Repeat([]float64{math.MaxFloat64}, 16), slices.Repeat([]float64{1, 2}, 8),
			Correlation{Samples: 16},
		},
	} {
		got := Pearson(c.x, c.y)
		if !agree(got, c.want, 1e-15) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		if !got.OK && got.OrZero() != 0 {
			t.Errorf("%s: undefined, but OrZero is %g", name, got.OrZero())
		}
	}
}

func TestALongConstantSeriesIsConstantWhateverItsMeanRoundsTo(t *testing.T) {
	for _, value := range []float64{0, .1, 33.3, 1e9 + .1, -1e-9} {
		x, y := slices.Repeat([]float64{value}, 5000), walk(1, 5000)
		if got := Pearson(x, y); got.OK {
			t.Errorf("%g all along: %+v", value, got)
		}
		x[4321] = value + math.Abs(value)/8 + 1
		if got := Pearson(x, y); !got.OK {
			t.Errorf("%g but for one value: %+v", value, got)
		}
	}
}

func TestAnOffsetCostsPearsonNoDigits(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	x, y := make([]float64, 100_000), make([]float64, 100_000)
	for i := range x {
		x[i] = float64(r.IntN(64))
		y[i] = x[i] + float64(r.IntN(64))
	}
	want := Pearson(x, y)
	for i := range x {
		x[i] += 1 << 40
		y[i] -= 1 << 41
	}
	if got := Pearson(x, y); !agree(got, want, 1e-12) {
		t.Errorf("%+v, without the offset %+v", got, want)
	}
}

func TestVectorsAndTheClearVersionAgree(t *testing.T) {
	if !hasVectors {
		return // there is but the clear version here
	}
	for _, n := range []int{8, 16, 504, 512, 4096} {
		x, y := walk(4, n), walk(5, n)
		var fastOrigin, slowOrigin point
		fast, slow := momentsVector(x, y, &fastOrigin, true), momentsScalar(x, y, &slowOrigin, true)
		for i, pair := range [][2]float64{
			{fast.n, slow.n},
			{fast.meanX, slow.meanX},
			{fast.meanY, slow.meanY},
			{fast.sumXX, slow.sumXX},
			{fast.sumYY, slow.sumYY},
			{fast.sumXY, slow.sumXY},
		} {
			if math.Abs(pair[0]-pair[1]) > 1e-11*math.Sqrt(slow.sumXX*slow.sumYY+1) {
				t.Errorf("%d samples, moment %d: %g, by the clear version %g", n, i, pair[0], pair[1])
			}
		}
	}
}
