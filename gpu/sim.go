package gpu

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/statedir"
)

// SimOptions are the surroundings of simulated GPUs. Nil stands for the
// defaults of all.
type SimOptions struct {
	// Now is the clock that the GPUs live by; nil means time.Now.
	Now func() time.Time
	// Wait is how a call that a fault makes slow waits; nil means in real time.
	Wait func(time.Duration)
	// Dir is the folder that holds what the GPUs remember, so that locks and
	// work outlive the process; "" keeps it in memory.
	Dir string
	// Seed makes the UUIDs, with the index.
	Seed uint64
	// Faults go wrong; nil means none.
	Faults *Faults
}

// Boards finds a GPU model by its name.
type Boards func(model string) (*dvfsmodel.Board, error)

// SimLibrary is a machine with simulated GPUs.
type SimLibrary struct {
	machine *simMachine
	faults  *Faults
	wait    func(time.Duration)
}

// OpenSim makes the simulated GPUs that a text such as "sim", "sim:4" or
// "sim:4,model=GTX1080Ti,lock=core" asks for, or finds them as they were left
// in the options' folder; boards finds the GPU model. Options after the count are model=NAME (default
// V100), lock=none|core|both|limit (default: the core clock, the memory clock
// where the model has several, and the power limit), profiles (it has workload
// power profiles), energy=off, minor=reverse or the
// minor numbers as minor=2/0/1, mig, mps, speed=N
// (work takes an Nth of its model's time, at the same power), busy, and
// bursty=PERIOD/DUTY, load=FILE and wait=SHARE for a load that waits in between.
func OpenSim(spec string, boards Boards, o *SimOptions) (*SimLibrary, error) {
	s, err := parseSimSpec(spec)
	if err != nil {
		return nil, err
	}
	var opts SimOptions
	if o != nil {
		opts = *o
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Wait == nil {
		opts.Wait = sleepReal
	}
	model, err := newSimModel(s, boards)
	if err != nil {
		return nil, err
	}
	m := &simMachine{model: model, now: opts.Now, dir: opts.Dir}
	for i := range s.count {
		id := simIdentity(i, opts.Seed, model.name, s.minors[i])
		m.ids = append(m.ids, id)
		m.states = append(m.states, simState{
			UUID: id.UUID, Limit: model.limit, Sharing: s.sharing, Since: opts.Now(),
		})
	}
	if m.dir != "" {
		if err := statedir.Make(m.dir); err != nil {
			return nil, fmt.Errorf("simulator: %w", err)
		}
		// Reads the file, and writes the first one.
		err := m.withState(0, func(*simState, time.Time) (bool, error) { return true, nil })
		if err != nil {
			return nil, err
		}
	}
	return &SimLibrary{machine: m, faults: opts.Faults, wait: opts.Wait}, nil
}

func sleepReal(d time.Duration) { <-time.After(d) }

// simIdentity depends on nothing but its arguments.
func simIdentity(i int, seed uint64, model string, minor int) Identity {
	h := sha256.Sum256(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, seed), uint64(i))) //nolint:gosec // not negative
	return Identity{
		UUID:  fmt.Sprintf("GPU-%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16]),
		Bus:   fmt.Sprintf("00000000:%02X:00.0", 0x17+2*i),
		Model: model,
		Minor: minor,
	}
}

// Devices is part of [Library].
func (l *SimLibrary) Devices() ([]Device, error) {
	if _, err := l.faults.apply(-1, OpOpen, l.wait); err != nil {
		return nil, fmt.Errorf("simulator: open: %w", err)
	}
	sims, err := l.Sims()
	if err != nil {
		return nil, err
	}
	var devices []Device
	var errs []error
	for i, g := range sims {
		err := g.open()
		switch {
		case errors.Is(err, errMissing): // the driver doesn't count it
		case err != nil:
			devices, errs = append(devices, nil), append(errs,
				fmt.Errorf("simulator: open GPU %d: %w", i, err))
		default:
			devices = append(devices, g)
		}
	}
	return devices, errors.Join(errs...)
}

// errMissing tells that a GPU isn't on the machine's bus.
var errMissing = errors.New("the GPU is missing")

// open is what opening one GPU of several meets.
func (g *Sim) open() error {
	return g.call(OpOpen, func(*simState, time.Time) (bool, error) { return false, nil })
}

// Sims opens all GPUs, for what only a simulator can do. No fault hinders it.
func (l *SimLibrary) Sims() ([]*Sim, error) {
	sims := make([]*Sim, len(l.machine.ids))
	for i := range sims {
		sims[i] = &Sim{library: l, index: i, id: l.machine.ids[i]}
		err := l.machine.withState(i, func(s *simState, _ time.Time) (bool, error) {
			sims[i].generation = s.Generation
			if s.Minor != nil {
				sims[i].id.Minor = *s.Minor
			}
			return false, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return sims, nil
}

// Reboot boots the machine: no GPU is locked, nothing runs, and the device files
// are numbered anew, in the driver's order, without a gap for those that are
// missing. A GPU that was lost is back; one that is missing stays so until
// [Sim.Reboot].
func (l *SimLibrary) Reboot() error {
	sims, err := l.Sims()
	if err != nil {
		return err
	}
	next := 0
	for _, g := range sims {
		err := g.change(func(s *simState, m *simModel) error {
			s.resetDriver(m)
			s.Lost = false
			if !s.Missing {
				minor := next
				s.Minor = &minor
				next++
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Close does nothing: the GPUs stay as they are.
func (l *SimLibrary) Close() error { return nil }

// Sim is a handle on a simulated GPU. It remembers locks, does [Work] at the
// speed and power of a DVFS model, and counts energy exactly. As with a real
// one, a reload of the driver makes the handle stale.
type Sim struct {
	library    *SimLibrary
	index      int
	id         Identity
	generation uint64
}

var _ Device = (*Sim)(nil)

// Identity is made of the index and the seed; its minor number is that of when the
// GPU was opened.
func (g *Sim) Identity() Identity { return g.id }

// Capability is that of the spec.
func (g *Sim) Capability() Capability { return g.library.machine.model.capability }

// Clocks returns the table of the model's profile.
func (g *Sim) Clocks() (Clocks, error) {
	var c Clocks
	err := g.call(OpClocks, func(*simState, time.Time) (bool, error) {
		c = g.library.machine.model.clocks.Clone()
		return false, nil
	})
	return c, err
}

// Set sets a control until it is released or the driver goes. The error for a
// value that the GPU doesn't have is not one of this package's.
func (g *Sim) Set(c Control, v Value) error { return g.set(c, v, false) }

// Fix sets a control of which an idle GPU doesn't fall below the value either.
func (g *Sim) Fix(c Control, v Value) error { return g.set(c, v, true) }

func (g *Sim) set(c Control, v Value, fixed bool) error {
	return g.call(OpSet, func(s *simState, _ time.Time) (bool, error) {
		m := g.library.machine.model
		if !m.capability.Can(c) {
			return false, fmt.Errorf("%v: %w", c, ErrNotSupported)
		}
		if err := c.CheckBounds(m.capability, v); err != nil {
			return false, err
		}
		if !m.clocks.supportsOne(c, v) {
			return false, fmt.Errorf("%v %v %s: invalid argument", c, float64(v), c.Unit())
		}
		switch {
		case c == WorkloadProfile:
			if err := s.requestProfile(v); err != nil {
				return false, err
			}
		case c == PowerLimit && v == Value(s.Limit):
			s.Set[c] = 0 // as it was before
		default:
			s.Set[c] = v
		}
		s.Fixed = s.Fixed.with(c, fixed)
		s.noteWrite()
		return true, nil
	})
}

// Release gives a control back.
func (g *Sim) Release(c Control) error {
	return g.call(OpRelease, func(s *simState, _ time.Time) (bool, error) {
		if !g.library.machine.model.capability.Can(c) {
			return false, fmt.Errorf("%v: %w", c, ErrNotSupported)
		}
		changed := s.Set[c] != 0
		s.Set[c] = 0
		if c == PowerLimit {
			changed = changed || s.Limit != g.library.machine.model.limit
			s.Limit = g.library.machine.model.limit
		}
		s.Fixed = s.Fixed.with(c, false)
		if changed {
			s.noteWrite()
		}
		return changed, nil
	})
}

// PowerLimit returns the limit in force: a simulated GPU has no other.
func (g *Sim) PowerLimit() (dvfsmodel.Watt, error) {
	var limit dvfsmodel.Watt
	err := g.call(OpPowerLimit, func(s *simState, _ time.Time) (bool, error) {
		limit = s.limitInForce()
		return false, nil
	})
	return limit, err
}

// Read measures.
func (g *Sim) Read() (Reading, error) {
	var r Reading
	err := g.call(OpRead, func(s *simState, now time.Time) (bool, error) {
		r = s.reading(g.library.machine.model, now)
		return false, nil
	})
	return r, err
}

// Processes returns those whose work isn't done, by pid.
func (g *Sim) Processes() ([]int, error) {
	var pids []int
	err := g.call(OpProcesses, func(s *simState, _ time.Time) (bool, error) {
		for i := range s.Work {
			pids = append(pids, s.Work[i].PID)
		}
		slices.Sort(pids)
		pids = slices.Compact(pids)
		return false, nil
	})
	return pids, err
}

// Sharing is that of the spec, or of [Sim.Share].
func (g *Sim) Sharing() (Sharing, error) {
	var shared Sharing
	err := g.call(OpSharing, func(s *simState, _ time.Time) (bool, error) {
		shared = s.Sharing
		return false, nil
	})
	return shared, err
}

// call is a call through the driver: faults hinder it, and a lost GPU or a
// stale handle ends it.
func (g *Sim) call(op Op, f func(s *simState, now time.Time) (bool, error)) error {
	l := g.library
	effects, err := l.faults.apply(g.index, op, l.wait)
	if len(effects) > 0 {
		if err := g.change(func(s *simState, m *simModel) error { return s.applyFaults(m, effects) }); err !=
			nil {
			return err
		}
	}
	if err == nil {
		err = l.machine.withState(g.index, func(s *simState, now time.Time) (bool, error) {
			switch {
			case s.Missing && op == OpOpen:
				return false, errMissing
			case s.Lost, s.Missing:
				return false, ErrLost
			case s.Generation != g.generation:
				return false, ErrReloaded
			}
			return f(s, now)
		})
	}
	if err != nil {
		return fmt.Errorf("GPU %s: %v: %w", g.Identity().Bus, op, err)
	}
	return nil
}

// change is what happens to a GPU beside the driver.
func (g *Sim) change(f func(s *simState, m *simModel) error) error {
	m := g.library.machine
	return m.withState(g.index, func(s *simState, _ time.Time) (bool, error) {
		err := f(s, m.model)
		return err == nil, err
	})
}

// Run starts work beside whatever else runs. Done is where it starts.
func (g *Sim) Run(w Work) error {
	return g.change(func(s *simState, m *simModel) error {
		w.Began = s.Since
		if len(w.Phases) == 0 {
			w.Phases = m.load.phases
		}
		s.Work = append(slices.Clone(s.Work), w)
		return s.validate(m)
	})
}

// Ended returns the last pieces of work that were done, in the order of their ends:
// what they truly took and used. No real GPU tells.
func (g *Sim) Ended() ([]FinishedWork, error) {
	var list []FinishedWork
	err := g.library.machine.withState(g.index, func(s *simState, _ time.Time) (bool, error) {
		list = slices.Clone(s.Ended)
		return false, nil
	})
	return list, err
}

// Stop ends all work of a process.
func (g *Sim) Stop(pid int) error {
	return g.change(func(s *simState, _ *simModel) error {
		s.Work = slices.DeleteFunc(slices.Clone(s.Work), func(w Work) bool { return w.PID == pid })
		return nil
	})
}

// Writes returns when controls of the GPU were last set or given back, in order. No
// real GPU tells.
func (g *Sim) Writes() ([]time.Time, error) {
	var list []time.Time
	err := g.library.machine.withState(g.index, func(s *simState, _ time.Time) (bool, error) {
		list = slices.Clone(s.Writes)
		return false, nil
	})
	return list, err
}

// Work returns what still runs and how far it is, by pid.
func (g *Sim) Work() ([]Work, error) {
	var list []Work
	err := g.library.machine.withState(g.index, func(s *simState, _ time.Time) (bool, error) {
		list = slices.Clone(s.Work)
		return false, nil
	})
	slices.SortStableFunc(list, func(a, b Work) int { return cmp.Compare(a.PID, b.PID) })
	return list, err
}

// Held returns what a control is set to, 0 where it isn't. No real GPU tells of all.
func (g *Sim) Held(c Control) (Value, error) {
	var v Value
	err := g.library.machine.withState(g.index, func(s *simState, _ time.Time) (bool, error) {
		v = s.Set[c]
		return false, nil
	})
	return v, err
}

// IsFixed reports whether a control is set so that it doesn't fall below its value. No
// real GPU tells.
func (g *Sim) IsFixed(c Control) (fixed bool, err error) {
	err = g.library.machine.withState(g.index, func(s *simState, _ time.Time) (bool, error) {
		fixed = s.Fixed.Has(c)
		return false, nil
	})
	return fixed, err
}

// LimitPower sets the limit beside epd, as nvidia-smi -pl does: it is what was there before, to
// whoever sets it next. The board takes any.
func (g *Sim) LimitPower(limit dvfsmodel.Watt) error {
	return g.change(func(s *simState, m *simModel) error {
		s.Limit, s.Set[PowerLimit] = limit, 0
		return s.validate(m)
	})
}

// RequestProfiles has others request power profiles beside epd, as nvidia-smi does, and no others.
func (g *Sim) RequestProfiles(set ProfileSet) error {
	return g.change(func(s *simState, m *simModel) error {
		s.Set[WorkloadProfile] = Value(set)
		return s.validate(m)
	})
}

// Share says how the GPU is divided.
func (g *Sim) Share(sharing Sharing) error {
	return g.change(func(s *simState, _ *simModel) error {
		s.Sharing = sharing
		return nil
	})
}

// InjectFault makes the GPU suffer a fault at once: [FaultLost], [FaultMissing],
// [FaultReset], [FaultStuck], [FaultReload], [FaultForeign] or [FaultUnlimited].
func (g *Sim) InjectFault(k FaultKind) error {
	return g.change(func(s *simState, m *simModel) error { return s.applyFaults(m, []FaultKind{k}) })
}

// Reboot brings a GPU back that was lost or missing, without locks and work.
func (g *Sim) Reboot() error {
	return g.change(func(s *simState, m *simModel) error {
		s.resetDriver(m)
		s.Lost, s.Missing = false, false
		return nil
	})
}
