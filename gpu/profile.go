package gpu

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/epplan/epplan/dvfsmodel"
)

// ProfileSet is a set of workload power profiles. As a [Value] it is the sum of 2^n over their numbers n
// in NVML, which a float64 has exactly.
type ProfileSet uint64

// ProfilesOf returns the set of some profiles.
func ProfilesOf(list ...dvfsmodel.PowerProfile) ProfileSet {
	var s ProfileSet
	for _, p := range list {
		if p > 0 && p <= dvfsmodel.MaxPowerProfile {
			s |= 1 << (p - 1)
		}
	}
	return s
}

// profilesIn returns the set that a value stands for; false: it stands for none.
func profilesIn(v Value) (s ProfileSet, ok bool) {
	if !(v >= 0 && v < 1<<dvfsmodel.MaxPowerProfile) || v != Value(math.Trunc(float64(v))) {
		return 0, false
	}
	return ProfileSet(v), true
}

// Has reports whether a profile is in the set.
func (s ProfileSet) Has(p dvfsmodel.PowerProfile) bool { return p > 0 && s&ProfilesOf(p) != 0 }

// All returns the profiles of the set, in the order of their numbers.
func (s ProfileSet) All() iter.Seq[dvfsmodel.PowerProfile] {
	return func(yield func(dvfsmodel.PowerProfile) bool) {
		for p := dvfsmodel.PowerProfile(1); p <= dvfsmodel.MaxPowerProfile; p++ {
			if s.Has(p) && !yield(p) {
				return
			}
		}
	}
}

// lastProfile returns the only profile of the set, the last one of several; 0: it is empty.
func (s ProfileSet) lastProfile() (last dvfsmodel.PowerProfile) {
	for p := range s.All() {
		last = p
	}
	return last
}

// Names returns those of the profiles.
func (s ProfileSet) Names() []string {
	names := []string{}
	for p := range s.All() {
		names = append(names, p.String())
	}
	return names
}

// String returns the names with commas between; "none" where the set is empty.
func (s ProfileSet) String() string {
	if s == 0 {
		return dvfsmodel.PowerProfile(0).String()
	}
	return strings.Join(s.Names(), ", ")
}

// Profiles are the workload power profiles of a GPU at a moment.
type Profiles struct {
	Requested ProfileSet // by whomever
	Enforced  ProfileSet // those of them that are in force: some exclude others
}

// ProfileDevice is a [Device] that has workload power profiles. Setting [WorkloadProfile] requests one
// beside those that are requested; releasing it takes all requests back.
type ProfileDevice interface {
	Profiles() (Profiles, error)
	// Admissible are the profiles that would be in force if they were requested beside those that are.
	Admissible() (ProfileSet, error)
	// Withdraw takes the request for one profile back. Taking back what isn't requested is no error.
	Withdraw(p dvfsmodel.PowerProfile) error
}

// ProfilesOn asks a device for its profiles. [ErrNotSupported] tells that it has none.
func ProfilesOn(d Device) (Profiles, error) {
	p, ok := d.(ProfileDevice)
	if !ok {
		return Profiles{}, fmt.Errorf("power profiles of %s: %w", d.Identity().Bus, ErrNotSupported)
	}
	return p.Profiles() //nolint:wrapcheck // names the GPU
}

// AdmissibleProfiles returns those that can be set on a device now; none where it has no profiles.
func AdmissibleProfiles(d Device) (ProfileSet, error) {
	p, ok := d.(ProfileDevice)
	if !ok || !d.Capability().Can(WorkloadProfile) {
		return 0, nil
	}
	return p.Admissible() //nolint:wrapcheck // names the GPU
}

// requestedValue returns what is requested on a device, as a value.
func requestedValue(d Device) (Value, error) {
	p, err := ProfilesOn(d)
	return Value(p.Requested), err
}

// withdrawUnless takes back the request for a profile that wasn't requested before. Others stay.
func withdrawUnless(d Device, set, before Value) error {
	was, _ := profilesIn(before)
	ours, _ := profilesIn(set)
	p, ok := d.(ProfileDevice)
	switch {
	case was&ours == ours:
		return nil
	case !ok:
		return fmt.Errorf("power profiles of %s: %w", d.Identity().Bus, ErrNotSupported)
	}
	return p.Withdraw(ours.lastProfile()) //nolint:wrapcheck // names the GPU
}

// profileRule is what a driver says of one of its profiles.
type profileRule struct {
	priority uint32 // the lower value is put in force of two that exclude each other
	excludes ProfileSet
}

// profileRules are those of a GPU.
type profileRules map[dvfsmodel.PowerProfile]profileRule

// all returns the profiles that the GPU has.
func (r profileRules) all() (s ProfileSet) {
	for p := range r {
		s |= ProfilesOf(p)
	}
	return s
}

// excludes reports whether two profiles can't both be in force.
func (r profileRules) areExclusive(p, other dvfsmodel.PowerProfile) bool {
	return p != other && (r[p].excludes.Has(other) || r[other].excludes.Has(p))
}

// enforced returns those of some that are requested which are in force, by what NVML's documentation says: in
// the order of their priorities, each unless one before excludes it.
func (r profileRules) enforced(requested ProfileSet) (in ProfileSet) {
	list := slices.Collect((requested & r.all()).All())
	slices.SortStableFunc(list, func(a, b dvfsmodel.PowerProfile) int {
		return int(r[a].priority) - int(r[b].priority)
	})
	for _, p := range list {
		excluded := false
		for other := range in.All() {
			excluded = excluded || r.areExclusive(p, other)
		}
		if !excluded {
			in |= ProfilesOf(p)
		}
	}
	return in
}

// admissible returns the profiles that would be in force beside those that are requested.
func (r profileRules) admissible(requested ProfileSet) (s ProfileSet) {
	for p := range r {
		if r.enforced(requested | ProfilesOf(p)).Has(p) {
			s |= ProfilesOf(p)
		}
	}
	return s
}
