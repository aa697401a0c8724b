package spelling

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTheNearestNameIsWhatWasMeant(t *testing.T) {
	known := []string{
		"theta", "rho", "offline", "online", "idle_w_per_gpu", "gpus", "runtime_s", "c_w", "A10", "V100",
	}
	for name, want := range map[string]string{
		"thteta": "theta", "teta": "theta", "THETA": "theta", "ofline": "offline", "onlien": "online",
		"idle_w": "idle_w_per_gpu", "gpu": "gpus", "rh": "rho", "r": "", "xyz": "", "": "", "-": "",
		"idle-w-per-gpu": "idle_w_per_gpu",
		"runtime":        "runtime_s", "runtme_s": "runtime_s", "c": "c_w", "C": "c_w", "V10": "V100",
		"colour":                     "",
		strings.Repeat("theta", 100): "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestAmongEquallyNearNamesTheFirstIsMeant(t *testing.T) {
	for _, known := range [][]string{{"plan", "play"}, {"play", "plan"}} {
		if got := Nearest("plax", known); got != known[0] {
			t.Errorf("%q of %q", got, known)
		}
	}
}

// A name is found again after one slip of a hand, unless another known name is
// as near.
func TestOneSlipIsForgiven(t *testing.T) {
	known := []string{"energy_budget", "sleep_after", "hold_out", "time_margin"}
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SampledFrom(known).Draw(t, "name")
		i := rapid.IntRange(0, len(want)-2).Draw(t, "at")
		slip := map[string]string{
			"dropped": want[:i] + want[i+1:],
			"doubled": want[:i+1] + want[i:],
			"swapped": want[:i] + want[i+1:i+2] + want[i:i+1] + want[i+2:],
			"other":   want[:i] + "x" + want[i+1:],
		}[rapid.SampledFrom([]string{"dropped", "doubled", "swapped", "other"}).Draw(t, "slip")]
		if got := Nearest(slip, known); got != want {
			t.Fatalf("%q: %q, want %q", slip, got, want)
		}
	})
}

func TestTheDistanceCountsSlipsAndSwaps(t *testing.T) {
	var d distancer
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"abc", "", 3},
		{"abc", "acb", 1},
		{"kitten", "sitting", 3},
		{"ca", "abc", 3},
		{"über", "uber", 1},
	} {
		if got := d.distance(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[abc]{0,8}`)
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		there := d.distance(a, b)
		if back := d.distance(b, a); there != back || (there == 0) != (a == b) ||
			there > max(len(a), len(b)) {
			t.Fatalf("%q to %q: %d there, %d back", a, b, there, back)
		}
	})
}

func TestNamesAreListedByNearness(t *testing.T) {
	known := []string{"V100", "A10", "A100", "T4", "A100-80GB"}
	for name, want := range map[string]string{
		"A100-64": "A100 A10", "a1": "A10 A100", "NVIDIA V1000": "V100", "T5": "T4", "": "T4",
		strings.Repeat("A100", 40): "A100",
	} {
		got := strings.Join(SortedByNearness(name, known), " ")
		if !strings.HasPrefix(got, want) || len(got) != len(strings.Join(known, " ")) {
			t.Errorf("%q: %s, want %s first", name, got, want)
		}
	}
	if all := SortedByNearness("x", []string{strings.Repeat("é", 80), "y"}); len(all) != 2 {
		t.Errorf("%q", all)
	}
}
