package dvfsmodel

import (
	"cmp"
	"fmt"
)

// Setting is what the clocks, the power cap and the power profile of a GPU are set to; 0 leaves one of
// them as it is by default. Of a GPU model's default clocks, which count as (1, 1) in a [Scaling], neither is 0.
type Setting struct {
	Core MHz  `json:"core_mhz"`       // 0: the default one
	Mem  MHz  `json:"mem_mhz"`        // 0: the default one
	Cap  Watt `json:"cap_w,omitzero"` // 0: the default limit
	// Profile is the one that is requested beside what others request. Models know nothing of it: runs
	// under another one are another workload's.
	Profile PowerProfile `json:"power_profile,omitzero"`
}

// WithoutProfile returns the setting that is chosen for a run: its power profile is its partition's.
func (s Setting) WithoutProfile() Setting {
	s.Profile = 0
	return s
}

// AtMost returns the setting with its clocks lowered to those of a ceiling. A clock of zero in the ceiling
// bounds nothing, and one in the setting stays.
func (s Setting) AtMost(ceiling Setting) Setting {
	if ceiling.Core > 0 {
		s.Core = min(s.Core, ceiling.Core)
	}
	if ceiling.Mem > 0 {
		s.Mem = min(s.Mem, ceiling.Mem)
	}
	return s
}

// Compare orders settings by their core clocks, then by those of the memory, by their caps, and then by
// their profiles.
func (s Setting) Compare(other Setting) int {
	return cmp.Or(cmp.Compare(s.Core, other.Core), cmp.Compare(s.Mem, other.Mem),
		cmp.Compare(s.Cap, other.Cap), cmp.Compare(s.Profile, other.Profile))
}

// CapRange is the power caps that may be set for a GPU: from Min on and below Max, the limit that it is
// under by default. The zero value has none.
type CapRange struct{ Min, Max Watt }

// Has reports whether a cap may be set.
func (r CapRange) Has(w Watt) bool { return r.Min > 0 && w >= r.Min && w < r.Max }

// CheckBase reports default clocks that aren't finite and positive.
func (s Setting) CheckBase() error {
	if !isPositive(float64(s.Core)) || !isPositive(float64(s.Mem)) {
		return fmt.Errorf("base clocks %g/%g MHz, want positive numbers", float64(s.Core), float64(s.Mem))
	}
	return nil
}

// Words returns the setting in words: "default clocks", "core 1087 MHz", "core 1087 MHz,
// memory 877 MHz" or "core 1087 MHz, power at most 200 W".
func (s Setting) Words() string {
	words := "default clocks"
	switch {
	case s.Core != 0 && s.Mem != 0:
		words = fmt.Sprintf("core %v MHz, memory %v MHz", float64(s.Core), float64(s.Mem))
	case s.Core != 0:
		words = fmt.Sprintf("core %v MHz", float64(s.Core))
	case s.Mem != 0:
		words = fmt.Sprintf("memory %v MHz", float64(s.Mem))
	}
	if s.Cap != 0 {
		words += fmt.Sprintf(", power at most %v W", float64(s.Cap))
	}
	if s.Profile != 0 {
		words += ", power profile " + s.Profile.String()
	}
	return words
}

// Short returns the setting as tables show it: "1380/877", with a cap "1380/877@200W", and a dash for
// what isn't set; a power profile follows, "1380/877+Max-Q".
func (s Setting) Short() string {
	dash := func(x float64) string {
		if x == 0 {
			return "–"
		}
		return fmt.Sprintf("%g", x)
	}
	short := dash(float64(s.Core)) + "/" + dash(float64(s.Mem))
	if s.Cap != 0 {
		short += fmt.Sprintf("@%gW", float64(s.Cap))
	}
	if s.Profile != 0 {
		short += "+" + s.Profile.String()
	}
	return short
}
