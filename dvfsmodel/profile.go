package dvfsmodel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// PowerProfile is a workload power profile of a GPU: settings of its vendor's for one kind of work, or for
// one balance of speed and power, which the driver puts in force where it is requested. 0 is none; else it
// is one more than its number in NVML.
type PowerProfile uint8

// The profiles that have names, as in NVML's nvmlPowerProfileType_t.
const (
	MaxP PowerProfile = iota + 1
	MaxQ
	ComputeBound
	MemoryBound
	NetworkBound
	Balanced
)

// MaxPowerProfile is the last one that can be told from others.
const MaxPowerProfile PowerProfile = 52

// profileNames are the names by number.
var profileNames = []string{
	"Max-P", "Max-Q", "Compute", "Memory-Bound", "Network", "Balanced", "LLM-Inference", "LLM-Training",
	"RBM", "DCPCIE", "HMMA-Sparse", "HMMA-Dense", "Sync-Balanced", "HPC", "MIG",
}

// PowerProfileNames returns the names of profiles, in their order.
func PowerProfileNames() []string { return slices.Clone(profileNames) }

// unnamedProfile is how a profile without a name begins.
const unnamedProfile = "profile-"

// String returns the profile's name; "none" without one.
func (p PowerProfile) String() string {
	switch {
	case p == 0:
		return "none"
	case int(p) <= len(profileNames):
		return profileNames[p-1]
	}
	return unnamedProfile + strconv.Itoa(int(p)-1)
}

// ParsePowerProfile returns the profile of a name, such as "Max-Q", or of its number in NVML, such as
// "profile-20", where it has no name.
func ParsePowerProfile(name string) (PowerProfile, error) {
	if i := slices.Index(profileNames, name); i >= 0 {
		return PowerProfile(i + 1), nil
	}
	if text, ok := strings.CutPrefix(name, unnamedProfile); ok {
		n, err := strconv.Atoi(text)
		if err == nil && n >= len(profileNames) && n < int(MaxPowerProfile) {
			return PowerProfile(n + 1), nil
		}
	}
	return 0, fmt.Errorf("power profile %.40q, want one of %s", name, strings.Join(profileNames, ", "))
}

// MarshalText writes the name.
func (p PowerProfile) MarshalText() ([]byte, error) {
	if p > MaxPowerProfile {
		return nil, fmt.Errorf("power profile %d, want at most %d", p, MaxPowerProfile)
	}
	return []byte(p.String()), nil
}

// UnmarshalText reads what MarshalText wrote.
func (p *PowerProfile) UnmarshalText(text []byte) (err error) {
	if string(text) == PowerProfile(0).String() {
		*p = 0
		return nil
	}
	*p, err = ParsePowerProfile(string(text))
	return err
}
