package correlate

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func TestAWindowIsPearsonOfItsLatestSamples(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(2, 20).Draw(t, "size")
		w, err := NewWindow(size)
		if err != nil {
			t.Fatal(err)
		}
		var x, y []float64
		for range rapid.IntRange(0, 100).Draw(t, "samples") {
			x, y = append(x, sample().Draw(t, "x")), append(y, sample().Draw(t, "y"))
			w.Add(x[len(x)-1], y[len(y)-1])
			if rapid.IntRange(0, 2).Draw(t, "asked") == 0 {
				continue
			}
			from := max(0, len(x)-size)
			if got, want := w.Pearson(), oracle(x[from:], y[from:]); !agree(got, want, 1e-11) {
				t.Fatalf("after %d: %+v, want %+v", len(x), got, want)
			}
		}
	})
}

// calm feeds both streams a value far out, then many windows of small ones.
func calm(size int) (x, y []float64) {
	r := rand.New(rand.NewPCG(8, 8))
	for range 20 * size {
		x = append(x, float64(r.IntN(64)))
		y = append(y, x[len(x)-1]+float64(r.IntN(64)))
	}
	x[size], y[size+1] = 1e12, -1e12
	return x, y
}

func TestAWindowForgetsAValueFarOutAsSoonAsItHasLeft(t *testing.T) {
	const size = 50
	w, err := NewWindow(size)
	if err != nil {
		t.Fatal(err)
	}
	x, y := calm(size)
	for i := range x {
		w.Add(x[i], y[i])
		if from := i + 1 - size; from > size+1 {
			if got, want := w.Pearson(), oracle(x[from:i+1], y[from:i+1]); !agree(got, want, 1e-12) {
				t.Fatalf("sample %d: %+v, want %+v", i, got, want)
			}
		}
	}
}

func TestCandidatesArePearsonOfTheirLatestSamples(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const series = 4
		window := rapid.IntRange(2, 12).Draw(t, "window")
		lists := [][]int{{1, 2, 3}, {}, {0, 2}, {2, 1}}
		c, err := NewCandidates(series, window, lists)
		if err != nil {
			t.Fatal(err)
		}
		seen := make([][]float64, series)
		for range rapid.IntRange(0, 60).Draw(t, "ticks") {
			values := rapid.SliceOfN(sample(), series, series).Draw(t, "values")
			if err := c.AddSample(values); err != nil {
				t.Fatal(err)
			}
			for i, v := range values {
				seen[i] = append(seen[i], v)
			}
			from := max(0, len(seen[0])-window)
			for i, list := range lists {
				for place, j := range list {
					want := oracle(seen[i][from:], seen[j][from:])
					if got := c.Pearson(i, place); !agree(got, want, 1e-9) {
						t.Fatalf("after %d: %d with %d: %+v, want %+v", len(seen[0]), i, j, got, want)
					}
				}
			}
		}
	})
}

func TestCandidatesForgetAValueFarOutAsSoonAsItHasLeft(t *testing.T) {
	const size = 50
	c, err := NewCandidates(2, size, [][]int{{1}, {0}})
	if err != nil {
		t.Fatal(err)
	}
	x, y := calm(size)
	for i := range x {
		if err := c.AddSample([]float64{x[i], y[i]}); err != nil {
			t.Fatal(err)
		}
		if from := i + 1 - size; from > size+1 {
			if got, want := c.Pearson(1, 0), oracle(x[from:i+1], y[from:i+1]); !agree(got, want, 1e-7) {
				t.Fatalf("sample %d: %+v, want %+v", i, got, want)
			}
		}
	}
}

func TestBadWindowsAndCandidatesAreErrors(t *testing.T) {
	if _, err := NewWindow(1); err == nil {
		t.Error("a window of one sample")
	}
	for name, try := range map[string]func() (*Candidates, error){
		"a window of one sample": func() (*Candidates, error) { return NewCandidates(1, 1, [][]int{{}}) },
		"too few lists":          func() (*Candidates, error) { return NewCandidates(2, 5, [][]int{{}}) },
		"a series that isn't": func() (*Candidates, error) {
			return NewCandidates(2, 5, [][]int{{2}, {}})
		},
	} {
		if _, err := try(); err == nil {
			t.Error(name)
		}
	}
	c, err := NewCandidates(2, 5, [][]int{{1}, {}})
	if err != nil {
		t.Fatal(err)
	}
	if c.AddSample([]float64{1}) == nil {
		t.Error("a tick of one value for two series")
	}
}
