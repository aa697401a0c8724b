package planner

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner/sharing"
)

// Sharing is how the GPUs of a cluster respond that tasks share by [UsageProfile].
type Sharing struct {
	// Physics are power and run time by a GPU's frequency. A GPU draws its power
	// while anything runs on it, whatever its tasks use of it. Run times at
	// default clocks are those at the highest frequency.
	Physics sharing.Physics
	// Contention is what sharing was measured to cost in time; nil:
	// [sharing.LinearCurve].
	Contention *sharing.Curve
}

// UsageProfile is what a task uses of each of its GPUs while it runs alone at the
// highest frequency.
type UsageProfile struct {
	// UtilPct is the utilisation by slot, percent. Profiles are laid over each
	// other slot by slot, whenever their tasks start, and repeat to the end.
	UtilPct []float64
	SlotS   float64 // length of a slot, seconds: the same for all tasks
	MemGB   float64 // memory on each GPU, GB
	Kappa   float64 // how many times its time alone at the highest frequency it may take
}

// Shared is what a plan says of tasks that share GPUs.
type Shared struct {
	Tasks          []int           // those that run on GPUs shared by profile, ascending
	ClockIntervals []ClockInterval // what each GPU's clock was while anything ran, by GPU and time
	// Of Tasks: those that take longer than Kappa or their limits allow, ascending.
	Slowed []int
}

// ClockInterval is a time over which a GPU runs something at one frequency. Clocks
// belong to GPUs, not to tasks.
type ClockInterval struct {
	Node, GPU int
	From, To  float64 // seconds
	MHz       dvfsmodel.MHz
}

// CanShareGPUs reports whether tasks with profiles may share the GPUs of a class.
func (p *Problem) CanShareGPUs(class int) bool {
	return p.Cluster.Sharing != nil && p.Cluster.Classes[class].SharedGB != nil
}

// SharedNodes are the classes of the nodes whose GPUs tasks may share, by node:
// as many of an unlimited class as there are tasks.
func (p *Problem) SharedNodes() []int {
	var classes []int
	for class := range p.Cluster.Classes {
		if p.CanShareGPUs(class) {
			classes = append(classes,
				slices.Repeat([]int{class}, cmp.Or(p.Cluster.Classes[class].Count, len(p.Tasks)))...)
		}
	}
	return classes
}

// HasSharing reports whether some class has GPUs that may be shared, and
// some task a profile.
func (p *Problem) HasSharing() bool {
	for class := range p.Cluster.Classes {
		if p.CanShareGPUs(class) {
			return slices.ContainsFunc(p.Tasks, func(t Task) bool { return t.Profile != nil })
		}
	}
	return false
}

// MaxSharedRunTime is how long a task with a profile may take that takes alone seconds
// by itself: Kappa times that, within its limit.
func (t *Task) MaxSharedRunTime(alone float64) float64 { return min(t.Profile.Kappa*alone, t.Limit) }

// Validate reports the first thing that makes no sense.
func (s *Sharing) Validate() error {
	if err := s.Physics.Validate(); err != nil {
		return err
	}
	if s.Contention != nil {
		return s.Contention.Validate()
	}
	return nil
}

// validateProfiles reports the first profile that makes no sense, or isn't laid
// out as the first one is.
func (p *Problem) validateProfiles() error {
	var first *Task
	for i := range p.Tasks {
		t := &p.Tasks[i]
		if t.Profile == nil {
			continue
		}
		if first == nil {
			first = t
		}
		if err := t.Profile.validate(); err != nil {
			return fmt.Errorf("job %q: %w", t.ID, err)
		}
		if a, b := t.Profile, first.Profile; len(a.UtilPct) != len(b.UtilPct) || a.SlotS != b.SlotS {
			return fmt.Errorf("job %q: its profile has %d slots of %v s, that of job %q %d of %v s: want "+
				"the same for all",
				t.ID, len(a.UtilPct), a.SlotS, first.ID, len(b.UtilPct), b.SlotS)
		}
		if t.Share < 1 {
			return fmt.Errorf("job %q: a share of %v and a profile, want one of them", t.ID, t.Share)
		}
	}
	return nil
}

// validate reports the first thing about the profile that makes no sense.
func (f *UsageProfile) validate() error {
	if len(f.UtilPct) == 0 {
		return errors.New("its profile has no slots")
	}
	for slot, u := range f.UtilPct {
		if !(u >= 0 && u <= 100) {
			return fmt.Errorf("utilisation %v %% in slot %d of its profile, want 0 to 100", u, slot+1)
		}
	}
	if !(f.SlotS > 0) || math.IsInf(f.SlotS, 0) || !(f.MemGB > 0) || math.IsInf(f.MemGB, 0) {
		return fmt.Errorf("slots of %v s and %v GB in its profile, want finite numbers above 0",
			f.SlotS, f.MemGB)
	}
	if !(f.Kappa >= 1) || math.IsInf(f.Kappa, 0) {
		return fmt.Errorf("kappa %v in its profile, want a finite number of 1 or more", f.Kappa)
	}
	return nil
}
