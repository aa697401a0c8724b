package planner

import (
	"errors"
	"fmt"
	"math"

	"github.com/epplan/epplan/dvfsmodel"
)

// Validate reports the first thing that makes the problem meaningless. Tasks
// that merely cannot be planned are not errors. A response with a method
// Validate() error is asked for what is wrong with it.
func (p *Problem) Validate() error {
	if len(p.Tasks) == 0 {
		return errors.New("the batch has no jobs")
	}
	if err := p.Cluster.Validate(); err != nil {
		return err
	}
	if err := p.Objective.Validate(); err != nil {
		return err
	}
	if !(p.WaitWeight >= 0) || math.IsInf(p.WaitWeight, 0) {
		return fmt.Errorf("weight of waiting %v, want a finite number of 0 or more", p.WaitWeight)
	}
	if p.WaitWeight > 0 && p.Objective.DelayPower > 0 {
		return errors.New("a weight of waiting doesn't go with products of energy and time")
	}
	if p.Mode < Offline || p.Mode > Clairvoyant {
		return fmt.Errorf("mode %d, want offline, online or clairvoyant", int(p.Mode))
	}
	if p.Start != StartContinuous && p.Start != StartSlot {
		return fmt.Errorf("start rule %d, want continuous or slot", int(p.Start))
	}
	if p.Start == StartSlot && p.Cluster.Slot <= 0 {
		return errors.New("start rule slot needs a slot length above 0")
	}
	var responses dvfsmodel.Validator
	for i := range p.Tasks {
		if err := p.Tasks[i].validate(&responses); err != nil {
			return fmt.Errorf("job %q: %w", p.Tasks[i].ID, err)
		}
		if p.Mode == Offline && p.Tasks[i].Arrival > 0 {
			return fmt.Errorf("job %q arrives at %v s: not an offline problem", p.Tasks[i].ID,
				p.Tasks[i].Arrival)
		}
	}
	if p.Snapshot != nil {
		if err := p.Snapshot.validate(p); err != nil {
			return err
		}
	}
	return p.validateProfiles()
}

// Validate reports the first class that makes no sense.
func (c *Cluster) Validate() error {
	if len(c.Classes) == 0 {
		return errors.New("the cluster has no nodes")
	}
	if !(c.Slot >= 0) || math.IsInf(c.Slot, 0) {
		return fmt.Errorf("slot length %v s, want 0 or more", c.Slot)
	}
	for i := range c.Classes {
		if err := c.Classes[i].validate(); err != nil {
			return fmt.Errorf("node class %q: %w", c.Classes[i].Name, err)
		}
	}
	if c.Sharing != nil {
		if err := c.Sharing.Validate(); err != nil {
			return fmt.Errorf("shared GPUs: %w", err)
		}
	}
	return nil
}

func (k *NodeClass) validate() error {
	if k.GPUs < 1 || k.GPUs > MaxGPUs {
		return fmt.Errorf("%d GPUs per node, want 1 to %d", k.GPUs, MaxGPUs)
	}
	if k.Count < 0 || k.Count > MaxNodes {
		return fmt.Errorf("%d nodes, want 1 to %d, or 0 for as many as wanted", k.Count, MaxNodes)
	}
	for _, f := range [...]struct {
		name  string
		value float64
	}{
		{"CPUs", k.CPUs},
		{"memory", k.MemGiB},
		{"idle power", float64(k.IdleW)},
		{"host power", float64(k.HostW)},
		{"sleep power", float64(k.SleepW)},
		{"turn-on energy", float64(k.TurnOn)},
		{"turn-on delay", k.TurnOnDelay},
	} {
		if !(f.value >= 0) || math.IsInf(f.value, 0) {
			return fmt.Errorf("%s is %v, want a finite number of 0 or more", f.name, f.value)
		}
	}
	if k.SharedGB != nil && len(k.SharedGB) != k.GPUs {
		return fmt.Errorf("memory of %d shared GPUs, want it of each of %d", len(k.SharedGB), k.GPUs)
	}
	for _, gb := range k.SharedGB {
		if !(gb > 0) || math.IsInf(gb, 0) {
			return fmt.Errorf("a shared GPU has %v GB, want a finite number above 0", gb)
		}
	}
	return k.Steps.Validate()
}

func (t *Task) validate(responses *dvfsmodel.Validator) error {
	if !(t.Arrival >= 0) || math.IsInf(t.Arrival, 0) {
		return fmt.Errorf("arrival %v s, want a finite number of 0 or more", t.Arrival)
	}
	if !(t.Deadline >= t.Arrival) || math.IsNaN(t.Due) {
		return fmt.Errorf("deadline %v s (due %v s), want it not before the arrival, %v s", t.Deadline,
			t.Due, t.Arrival)
	}
	if t.Due > t.Deadline {
		return fmt.Errorf("due %v s, want it not after the deadline, %v s", t.Due, t.Deadline)
	}
	if !(t.Limit > 0) || !(t.Share > 0) || t.Share > 1 {
		return fmt.Errorf("limit %v s and share %v, want a positive limit and a share in (0, 1]",
			t.Limit, t.Share)
	}
	if !(t.CPUs >= 0) || !(t.MemGiB >= 0) {
		return fmt.Errorf("%v CPUs and %v GiB, want 0 or more", t.CPUs, t.MemGiB)
	}
	if t.Profile != nil && t.IsGang() {
		return errors.New("it has a profile and runs on several nodes, want GPUs for itself")
	}
	for i := range t.Options {
		o := &t.Options[i]
		if o.GPUs < 0 || o.Response == nil || (t.Share < 1 && o.GPUs != 1) {
			return fmt.Errorf("option %q: %d GPUs (share %v) or no model", o.Model, o.GPUs, t.Share)
		}
		if o.Nodes < 0 || (o.Nodes > 1 && (o.PerNode() == 0 || o.GPUs%o.Nodes != 0 || t.Share < 1)) {
			return fmt.Errorf("option %q: %d GPUs (share %v) on %d nodes, want as many whole GPUs on each",
				o.Model, o.GPUs, t.Share, o.Nodes)
		}
		if err := responses.Validate(o.Response); err != nil {
			return fmt.Errorf("option %q: %w", o.Model, err)
		}
	}
	return nil
}

func (n *Snapshot) validate(p *Problem) error {
	if p.Mode == Clairvoyant {
		return fmt.Errorf("a plan from the present is online or offline, not %s", p.Mode)
	}
	if p.Mode == Offline && n.Now != 0 {
		return fmt.Errorf("the present of an offline plan is at %v s, want 0", n.Now)
	}
	if !(n.Now >= 0) || math.IsInf(n.Now, 0) {
		return fmt.Errorf("the present is at %v s, want a finite number of 0 or more", n.Now)
	}
	seen := make(map[int]bool, len(n.Running))
	for _, r := range n.Running {
		if r.Task < 0 || r.Task >= len(p.Tasks) || seen[r.Task] {
			return fmt.Errorf("task %d runs, want one of %d, each once", r.Task, len(p.Tasks))
		}
		seen[r.Task] = true
		t := &p.Tasks[r.Task]
		if r.Class < 0 || r.Class >= len(p.Cluster.Classes) ||
			t.Option(p.Cluster.Classes[r.Class].Model) < 0 {
			return fmt.Errorf("job %q runs on node class %d, which doesn't suit it", t.ID, r.Class)
		}
		if !(r.Start >= t.Arrival) || !(r.Start <= n.Now) || !(r.End > n.Now) || math.IsInf(r.End, 0) {
			return fmt.Errorf("job %q runs from %v to %v s, want it from its arrival, %v, or later, "+
				"and beyond %v", t.ID, r.Start, r.End, t.Arrival, n.Now)
		}
	}
	return nil
}

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
