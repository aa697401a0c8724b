package gpu

import (
	"fmt"
	"math"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
)

// simProfiles are the power profiles of simulated GPUs that have any. Which real ones exclude each other,
// and which go first, their drivers say; here the fast one goes before the thrifty one.
var simProfiles = profileRules{
	dvfsmodel.MaxP:         {priority: 1, excludes: ProfilesOf(dvfsmodel.MaxQ)},
	dvfsmodel.MaxQ:         {priority: 2, excludes: ProfilesOf(dvfsmodel.MaxP)},
	dvfsmodel.ComputeBound: {priority: 4, excludes: ProfilesOf(dvfsmodel.MemoryBound)},
	dvfsmodel.MemoryBound:  {priority: 3, excludes: ProfilesOf(dvfsmodel.ComputeBound)},
}

// maxQShare is the part of the default core clock above which a simulated GPU doesn't go under Max-Q.
const maxQShare = 0.9

// profiles returns the power profiles that are requested, by whomever, and those in force.
func (s *simState) profiles() Profiles {
	requested, _ := profilesIn(s.Set[WorkloadProfile])
	return Profiles{Requested: requested, Enforced: simProfiles.enforced(requested)}
}

// ceiling returns the core clock above which a simulated GPU doesn't go under the profiles in force.
func (p Profiles) ceiling(standard dvfsmodel.MHz) dvfsmodel.MHz {
	if p.Enforced.Has(dvfsmodel.MaxQ) {
		return maxQShare * standard
	}
	return dvfsmodel.MHz(math.Inf(1))
}

// requestProfile requests a power profile beside others, if that puts it in force.
func (s *simState) requestProfile(v Value) error {
	wanted, _ := profilesIn(v)
	now := s.profiles().Requested
	if simProfiles.admissible(now)&wanted == 0 {
		return fmt.Errorf("power profile %s: %s is requested, which excludes it: %w", wanted, now,
			ErrNotSupported)
	}
	s.Set[WorkloadProfile] = Value(now | wanted)
	return nil
}

// Profiles returns those that are requested and in force.
func (g *Sim) Profiles() (Profiles, error) {
	var p Profiles
	err := g.call(OpProfiles, func(s *simState, _ time.Time) (bool, error) {
		p = s.profiles()
		return false, g.checkProfiles()
	})
	return p, err
}

// checkProfiles says that the GPU has none.
func (g *Sim) checkProfiles() error {
	if !g.Capability().Can(WorkloadProfile) {
		return fmt.Errorf("%v: %w", WorkloadProfile, ErrNotSupported)
	}
	return nil
}

// Admissible goes by what profiles exclude.
func (g *Sim) Admissible() (ProfileSet, error) {
	p, err := g.Profiles()
	return simProfiles.admissible(p.Requested), err
}

// Withdraw takes the request for a profile back.
func (g *Sim) Withdraw(p dvfsmodel.PowerProfile) error {
	return g.call(OpRelease, func(s *simState, _ time.Time) (bool, error) {
		requested := s.profiles().Requested
		if err := g.checkProfiles(); err != nil || !requested.Has(p) {
			return false, err
		}
		s.Set[WorkloadProfile] = Value(requested &^ ProfilesOf(p))
		s.noteWrite()
		return true, nil
	})
}
