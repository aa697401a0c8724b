package gpu

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Op is a call of a device that can be made to fail.
type Op string

// The calls of [Device], the opening of all of them, and any of these.
const (
	OpOpen       Op = "open"
	OpClocks     Op = "clocks"
	OpSet        Op = "lock" // of a control; so called since there were clocks alone
	OpRelease    Op = "unlock"
	OpPowerLimit Op = "limit"
	OpProfiles   Op = "profiles" // of power
	OpRead       Op = "read"
	OpProcesses  Op = "processes"
	OpSharing    Op = "sharing"
	OpAny        Op = "*"
)

var ops = []Op{
	OpOpen, OpClocks, OpSet, OpRelease, OpPowerLimit, OpProfiles, OpRead, OpProcesses, OpSharing, OpAny,
}

// FaultKind is what goes wrong.
type FaultKind string

// Kinds of faults. The last seven change the GPU, and the call goes on with
// what is left.
const (
	FaultPermission  FaultKind = "permission"  // the call returns ErrPermission
	FaultUnsupported FaultKind = "unsupported" // the call returns ErrNotSupported
	FaultTransient   FaultKind = "transient"   // the call returns an error that trying again mends
	FaultSlow        FaultKind = "slow"        // the call takes longer, and then happens
	FaultLost        FaultKind = "lost"        // the GPU falls off the bus, until a reboot
	// The same, and the driver counts it no more when GPUs are opened.
	FaultMissing FaultKind = "missing"
	FaultReset   FaultKind = "reset"   // the energy counter goes back to zero
	FaultStuck   FaultKind = "stuck"   // the energy counter stands still until a reset or a reload
	FaultReload  FaultKind = "reload"  // the driver is reloaded: no locks, stale handles
	FaultForeign FaultKind = "foreign" // somebody else sets the lowest clocks
	// The GPU takes more than its power limit, which it still tells, until a reload.
	FaultUnlimited FaultKind = "unlimited"
)

var faultKinds = []FaultKind{
	FaultPermission, FaultUnsupported, FaultTransient, FaultSlow,
	FaultLost, FaultMissing, FaultReset, FaultStuck, FaultReload, FaultForeign, FaultUnlimited,
}

// changesGPU tells which faults are of a GPU rather than of a call. They happen
// once unless the rule says more.
func (k FaultKind) changesGPU() bool {
	return k == FaultLost || k == FaultMissing || k == FaultReset || k == FaultStuck || k == FaultReload ||
		k == FaultForeign || k == FaultUnlimited
}

var errTransient = errors.New("unknown error of the driver")

// Fault is one rule of what goes wrong.
type Fault struct {
	GPU   int // index; -1: any
	Op    Op
	Kind  FaultKind
	Delay time.Duration // of FaultSlow
	After int           // calls of the operation that go well before
	Count int           // calls that go wrong, then the rule is spent; 0: all
}

// String returns the text that [ParseFaults] reads.
func (f Fault) String() string {
	var b strings.Builder
	if f.GPU >= 0 {
		fmt.Fprintf(&b, "%d/", f.GPU)
	}
	fmt.Fprintf(&b, "%s:%s", f.Op, f.Kind)
	if f.Kind == FaultSlow {
		fmt.Fprintf(&b, "=%v", f.Delay)
	}
	if f.After > 0 {
		fmt.Fprintf(&b, "@%d", f.After)
	}
	if f.Count > 1 || (f.Count == 1 && !f.Kind.changesGPU()) {
		fmt.Fprintf(&b, "x%d", f.Count)
	}
	return b.String()
}

// Faults is a list of rules that wear out as calls are made. A nil list has
// none. It is safe for concurrent use.
type Faults struct {
	mu    sync.Mutex
	rules []faultRule
}

type faultRule struct {
	Fault
	seen, fired int
}

// NewFaults makes a list of rules.
func NewFaults(list ...Fault) *Faults {
	f := &Faults{}
	f.Add(list...)
	return f
}

// Add adds rules to those that aren't spent.
func (f *Faults) Add(list ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, fault := range list {
		if fault.Count == 0 && fault.Kind.changesGPU() {
			fault.Count = 1
		}
		f.rules = append(f.rules, faultRule{Fault: fault})
	}
}

// Clear drops all rules; what they did to GPUs stays.
func (f *Faults) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

// ParseFaults reads rules divided by semicolons,
//
//	[GPU/]operation:kind[=delay][@after][xcount]
//
// such as "lock:permission;1/read:slow=3s;unlock:transient@2x3;*:lost". The
// operations are open, clocks, lock, unlock, limit, read, processes, sharing
// and * for any; open without a GPU is the opening of all of them, with one that
// of this GPU among the others. The kinds are permission, unsupported, transient,
// slow=delay, lost, missing, reset, stuck, reload, foreign and unlimited. The first calls go
// well where @after says how many. The last seven kinds happen once, the others at
// every call, unless xcount says how often.
func ParseFaults(text string) (*Faults, error) {
	list, err := parseFaults(text)
	if err != nil {
		return nil, err
	}
	return NewFaults(list...), nil
}

func parseFaults(text string) ([]Fault, error) {
	var list []Fault
	for part := range strings.SplitSeq(text, ";") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		fault, err := parseFault(part)
		if err != nil {
			return nil, fmt.Errorf("fault %q: %w", part, err)
		}
		list = append(list, fault)
	}
	return list, nil
}

func parseFault(text string) (Fault, error) {
	fault := Fault{GPU: -1}
	where, what, ok := strings.Cut(text, ":")
	if !ok {
		return fault, errors.New("want operation:kind")
	}
	if index, op, ok := strings.Cut(where, "/"); ok {
		n, err := parseCount(index, 0)
		if err != nil {
			return fault, fmt.Errorf("GPU %w", err)
		}
		fault.GPU, where = n, op
	}
	fault.Op = Op(where)
	if !slices.Contains(ops, fault.Op) {
		return fault, fmt.Errorf("operation %q, want one of %v", where, ops)
	}
	if err := fault.parseKind(what); err != nil {
		return fault, err
	}
	if fault.Op == OpOpen && fault.GPU < 0 && fault.Kind.changesGPU() {
		return fault, fmt.Errorf("%s is of one GPU, and open of all: want the GPU, as 1/open:%s",
			fault.Kind, fault.Kind)
	}
	return fault, nil
}

func (f *Fault) parseKind(text string) (err error) {
	// From the right: a delay may end in neither.
	if head, count, ok := cutLast(text, "x"); ok {
		if f.Count, err = parseCount(count, 1); err != nil {
			return fmt.Errorf("count %w", err)
		}
		text = head
	}
	if head, after, ok := cutLast(text, "@"); ok {
		if f.After, err = parseCount(after, 1); err != nil {
			return fmt.Errorf("calls before %w", err)
		}
		text = head
	}
	kind, delay, delayed := strings.Cut(text, "=")
	f.Kind = FaultKind(kind)
	if !slices.Contains(faultKinds, f.Kind) {
		return fmt.Errorf("kind %q, want one of %v", kind, faultKinds)
	}
	if delayed != (f.Kind == FaultSlow) {
		return errors.New("want a delay after slow, as slow=3s, and after nothing else")
	}
	if delayed {
		if f.Delay, err = time.ParseDuration(delay); err != nil || f.Delay <= 0 {
			return fmt.Errorf("delay %q, want a positive duration such as 3s", delay)
		}
	}
	if f.Count == 0 && f.Kind.changesGPU() {
		f.Count = 1
	}
	return nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// parseCount reads a number of at least least, small enough for any int.
func parseCount(text string, least int) (int, error) {
	const most = 1_000_000_000
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%q, want a number from %d to %d", text, least, most)
	}
	return n, nil
}

// apply waits as long as the faults of a call say, and returns the error of
// the first that has one and the kinds that change the GPU.
func (f *Faults) apply(gpu int, op Op, wait func(time.Duration)) (effects []FaultKind, err error) {
	if f == nil {
		return nil, nil
	}
	delay, effects, err := f.matchRules(gpu, op)
	if delay > 0 {
		wait(delay)
	}
	return effects, err
}

// matchRules wears out the rules that match a call.
func (f *Faults) matchRules(gpu int, op Op) (delay time.Duration, effects []FaultKind, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.rules {
		r := &f.rules[i]
		if !r.isHit(gpu, op) {
			continue
		}
		switch r.Kind {
		case FaultSlow:
			delay += r.Delay
		case FaultPermission:
			err = errors.Join(err, ErrPermission)
		case FaultUnsupported:
			err = errors.Join(err, ErrNotSupported)
		case FaultTransient:
			err = errors.Join(err, errTransient)
		default:
			effects = append(effects, r.Kind)
		}
	}
	return delay, effects, err
}

// isHit reports whether a call goes wrong by the rule, and counts it.
func (r *faultRule) isHit(gpu int, op Op) bool {
	if r.Op != op && r.Op != OpAny {
		return false
	}
	if r.GPU >= 0 && r.GPU != gpu {
		return false
	}
	if gpu < 0 && r.Kind.changesGPU() {
		return false
	}
	if op == OpOpen && gpu >= 0 && r.GPU < 0 {
		return false // it hit when all were opened
	}
	r.seen++
	if r.seen <= r.After || (r.Count > 0 && r.fired >= r.Count) {
		return false
	}
	r.fired++
	return true
}

// applyFaults changes the state as faults say.
func (s *simState) applyFaults(m *simModel, kinds []FaultKind) error {
	for _, k := range kinds {
		switch k {
		case FaultLost:
			s.Lost, s.Work = true, nil
		case FaultMissing:
			s.Missing, s.Work = true, nil
		case FaultReset:
			s.Milli, s.Pico, s.Stuck = 0, 0, nil
		case FaultStuck:
			milli := s.Milli
			s.Stuck = &milli
		case FaultReload:
			s.resetDriver(m)
		case FaultForeign:
			s.Fixed = 0
			last := len(m.clocks.Mem) - 1
			if m.capability.Can(MemClock) {
				s.Set[MemClock] = Value(m.clocks.Mem[last])
			}
			low := m.clocks.Core[last]
			s.Set[CoreClock] = Value(low[len(low)-1])
		case FaultUnlimited:
			s.Unlimited = true
		default:
			return fmt.Errorf("%s changes no GPU", k)
		}
	}
	return nil
}
