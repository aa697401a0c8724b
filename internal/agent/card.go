package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
)

// ErrStuck tells that a call of a GPU's driver hasn't come back. The GPU is
// left alone until it does.
var ErrStuck = errors.New("the GPU's driver doesn't answer")

// managedGPU is a GPU with what the agent knows of it.
type managedGPU struct {
	uuid        string
	ownedByTwin bool          // an agent of the same journal looks after it
	timeout     time.Duration // of one call
	// onLateReturn is called after a call that hung has come back.
	onLateReturn func(*managedGPU)
	// turn is held while the GPU's clocks and its journal are changed. It is
	// never held longer than bounded calls and the journal's file take.
	turn chan struct{}

	ground ground // what it is at without runs

	mu    sync.Mutex   // guards what follows
	dev   gpu.Device   // the handle
	id    gpu.Identity // as of the handle
	table *gpu.Clocks  // once read
	hung  int          // calls that haven't come back in time
	lost  bool         // the handle's GPU fell off the bus

	entry        *Entry         // in the journal; nil: nothing is locked by us
	isEntryTrue  bool           // the clocks are known to be as the entry says
	isExact      bool           // and exactly so, also while the GPU has nothing to do
	isUnlocked   bool           // we unlocked it, and nobody of us locked it since
	without      gpu.ControlSet // what its driver refused since it was locked
	refused      string         // why the driver refused the last lock; empty: it didn't
	recentWrites writeTimes     // of its clocks, lately
	writes       int            // of its clocks since the agent began

	externalChange string        // why somebody else is thought to set its clocks
	watch          lockWatch     // whether it keeps its lock
	usualCore      dvfsmodel.MHz // at which GPUs of its model run when nobody sets clocks; 0: not known
	standing       standing      // whether somebody else's lock stands
	unlockedCore   dvfsmodel.MHz // the highest core clock seen while it wasn't locked; 0: none
}

func newManagedGPU(dev gpu.Device, timeout time.Duration, late func(*managedGPU)) *managedGPU {
	id := dev.Identity()
	return &managedGPU{
		uuid: id.UUID, id: id, dev: dev, timeout: timeout, onLateReturn: late, turn: make(chan struct{}, 1),
	}
}

// acquire waits for the card's turn.
func (c *managedGPU) acquire(ctx context.Context) error {
	select {
	case c.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case c.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for %s: %w", c.uuid, context.Cause(ctx))
	}
}

// inTurn does something with the card in its turn.
func (c *managedGPU) inTurn(ctx context.Context, do func(*managedGPU) error) error {
	if err := c.acquire(ctx); err != nil {
		return err
	}
	defer c.releaseTurn()
	return do(c)
}

// releaseTurn ends the card's turn.
func (c *managedGPU) releaseTurn() { <-c.turn }

// reopen gives the card a new handle, after the driver was reloaded or the GPU
// came back.
func (c *managedGPU) reopen(dev gpu.Device) {
	c.ground.note(func(g *groundState) { g.siteSet, g.asked = siteClocks{}, false })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dev, c.id, c.table, c.lost, c.without = dev, dev.Identity(), nil, false, 0
}

// identity returns the card's, as of when it was opened last: a driver that was reloaded
// may give the device files other numbers.
func (c *managedGPU) identity() gpu.Identity {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.id
}

// isLost reports whether the handle's GPU fell off the bus.
func (c *managedGPU) isLost() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}

// journalEntry returns the card's entry, nil where there is none.
func (c *managedGPU) journalEntry() *Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entry
}

// record notes what is journalled and whether the clocks are known to be so.
func (c *managedGPU) record(e *Entry, sure bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entry, c.isEntryTrue = e, sure
	c.watch.begin(time.Now())
	c.isUnlocked = e == nil && sure
	if e == nil {
		c.externalChange, c.without = "", 0
		c.watch.wasKept, c.watch.toldBelow = false, false
	}
}

// dropUnset takes controls out of the card's entry: the driver didn't set them after all. What the entry from
// before names stays.
func (c *managedGPU) dropUnset(before *Entry, unset ...gpu.Control) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, control := range unset {
		if _, held := before.held(control); !held {
			c.entry = c.entry.without(control)
		}
	}
}

// doWithout notes that the card goes on without a control of those that are wanted, and takes
// it out of them; false: it is the first one, without which there is no lock.
func (c *managedGPU) doWithout(control gpu.Control, want *lock) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	without := c.without | gpu.ControlsOf(control)
	rest := want.without(without)
	if rest == *want {
		return false
	}
	c.without, *want = without, rest
	return true
}

// withoutRefused returns what is wanted of the card less what its driver refused.
func (c *managedGPU) withoutRefused(want lock) lock {
	c.mu.Lock()
	defer c.mu.Unlock()
	return want.without(c.without)
}

// recordLock notes that the card is locked as its entry says.
func (c *managedGPU) recordLock(e *Entry, exact bool) {
	c.record(e, true)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isExact = exact
}

// isLockedAt reports whether the card is known to be locked so.
func (c *managedGPU) isLockedAt(want lock) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.isEntryTrue && c.entry != nil && lock{c.entry.Setting(), c.isExact} == want
}

// isAtEntry reports whether the card is known to be at what its entry says.
func (c *managedGPU) isAtEntry() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.isEntryTrue && c.entry != nil
}

// forgetLock notes that the card isn't at what its entry says any more, nor somebody else's.
func (c *managedGPU) forgetLock() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isEntryTrue, c.externalChange = false, ""
}

// externalReason is why somebody else is thought to set the card's clocks.
func (c *managedGPU) externalReason() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.externalChange
}

// clearExternalChange forgets that somebody else is thought to set the clocks.
func (c *managedGPU) clearExternalChange() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.externalChange = ""
	c.watch.begin(time.Now())
}

// prior returns what is known of a control that isn't in the journal: its value where the
// driver tells it, else whether this agent gave it back.
func (c *managedGPU) prior(control gpu.Control) (Prior, gpu.Value, error) {
	if control.TellsPrior() {
		v, err := call(c, control.Prior)
		if err != nil {
			return "", 0, fmt.Errorf("read the %s of %s before it is set: %w", control, c.uuid, err)
		}
		return PriorKnown, v, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isUnlocked {
		return PriorUnlocked, 0, nil
	}
	return PriorUnknown, 0, nil
}

// canSet reports whether a control of the card can be set.
func (c *managedGPU) canSet(control gpu.Control) bool {
	c.mu.Lock()
	dev := c.dev
	c.mu.Unlock()
	return dev.Capability().Can(control)
}

// checkBounds says why the card doesn't take a value whatever its clocks are.
func (c *managedGPU) checkBounds(control gpu.Control, v gpu.Value) error {
	c.mu.Lock()
	dev := c.dev
	c.mu.Unlock()
	return control.CheckBounds(dev.Capability(), v) //nolint:wrapcheck // says all
}

// clocks returns the card's table, read once.
func (c *managedGPU) clocks() (*gpu.Clocks, error) {
	c.mu.Lock()
	table := c.table
	c.mu.Unlock()
	if table != nil {
		return table, nil
	}
	read, err := call(c, gpu.Device.Clocks)
	if err != nil {
		return nil, fmt.Errorf("clocks of %s: %w", c.uuid, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.table = &read
	return c.table, nil
}

// callResult is what a call of a driver returns.
type callResult[T any] struct {
	value T
	err   error
}

// call calls the card's driver and waits for it no longer than the card's
// timeout. While a call hangs, no other is made: so no more goroutines than one
// call's are ever left to a driver that doesn't answer. When it does,
// onLateReturn is called.
func call[T any](c *managedGPU, what func(gpu.Device) (T, error)) (T, error) {
	var none T
	c.mu.Lock()
	dev, hung := c.dev, c.hung
	c.mu.Unlock()
	if hung > 0 {
		return none, fmt.Errorf("%s: %w", c.uuid, ErrStuck)
	}
	answers := make(chan callResult[T], 1)
	go func() {
		value, err := what(dev)
		answers <- callResult[T]{value, err}
	}()
	timer := time.NewTimer(c.timeout)
	defer timer.Stop()
	select {
	case a := <-answers:
		if errors.Is(a.err, gpu.ErrLost) {
			c.mu.Lock()
			c.lost = c.dev == dev
			c.mu.Unlock()
		}
		return a.value, a.err
	case <-timer.C:
	}
	c.mu.Lock()
	c.hung++
	c.mu.Unlock()
	go func() {
		<-answers
		c.mu.Lock()
		c.hung--
		free := c.hung == 0
		c.mu.Unlock()
		if free {
			c.onLateReturn(c)
		}
	}()
	return none, fmt.Errorf("%s: %w within %s", c.uuid, ErrStuck, c.timeout)
}

// callDriver is call for what returns an error alone.
func (c *managedGPU) callDriver(what func(gpu.Device) error) error {
	_, err := call(c, func(dev gpu.Device) (struct{}, error) { return struct{}{}, what(dev) })
	return err
}

// noteAnswer notes what the driver said to a lock.
func (c *managedGPU) noteAnswer(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = ""
	if errors.Is(err, gpu.ErrPermission) {
		c.refused = err.Error()
	}
}

// noteWrite notes that a clock of the card was written.
func (c *managedGPU) noteWrite() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recentWrites.add(time.Now())
	c.writes++
}

// writesLeft returns how many writes there may still be in this minute.
func (c *managedGPU) writesLeft(now time.Time, most int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.recentWrites.remaining(now, most)
}

// supports reports whether a table has a setting's clocks, of which the memory clock
// restricts the core clock. One at its default goes with any.
func supports(table *gpu.Clocks, s dvfsmodel.Setting) bool {
	for i, mem := range table.Mem {
		if s.Mem != 0 && s.Mem != mem {
			continue
		}
		if s.Core == 0 || slices.Contains(table.Core[i], s.Core) {
			return true
		}
	}
	return false
}

// isRefusal reports whether a driver's error says that a control can't be set, or mustn't be.
func isRefusal(err error) bool {
	return errors.Is(err, gpu.ErrPermission) || errors.Is(err, gpu.ErrNotSupported)
}

// GPUState is a GPU with its journal's entry.
type GPUState struct {
	Identity       gpu.Identity
	Entry          *Entry // nil: at default clocks as far as this agent is concerned
	Writes         int    // of its clocks since the agent began
	Stuck          bool
	Lost           bool   // it fell off the bus
	ExternalChange string // why somebody else is thought to set its clocks
	Refused        string // why its last lock was refused
	// Unsure says which values stay as they are because nobody knows who set them; "" for none.
	Unsure string
	// Suspected is the clock that the GPU never exceeds although nobody told of a limit; 0: none.
	Suspected dvfsmodel.MHz
}

// state returns what is known of the card now.
func (c *managedGPU) state() GPUState {
	c.mu.Lock()
	defer c.mu.Unlock()
	ground := c.ground.now()
	return GPUState{
		Identity: c.id, Lost: c.lost, Entry: c.entry, Writes: c.writes, Stuck: c.hung > 0,
		ExternalChange: c.externalChange, Refused: c.refused,
		Unsure:    joinNotes(ground.valueOfUnknownOrigin(), ground.share.othersLimit()),
		Suspected: ground.suspected(),
	}
}

// ground is what is known of a GPU without runs, under a lock of its own.
type ground struct {
	mu sync.Mutex
	is groundState
}

// groundState is what is known of a GPU without runs.
type groundState struct {
	base    *baseline     // as read or written last; nil: neither yet
	asked   bool          // the driver told, since the GPU's handle was opened
	limit   dvfsmodel.MHz // the clock that the GPU never exceeds, of this or a former agent; 0: none
	siteSet siteClocks    // the site's clocks that were set with the GPU's handle
	share   budgetShare   // what a power budget leaves it
}

// now returns what is known.
func (g *ground) now() groundState {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.is
}

// note notes something.
func (g *ground) note(what func(*groundState)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	what(&g.is)
}

// suspect notes which clock the GPU never exceeds; 0: none is known. What is on file is kept until a higher
// clock is seen.
func (g *groundState) suspect(limit, seen dvfsmodel.MHz) {
	if limit > 0 || seen > g.limit {
		g.limit = limit
	}
}

// suspected returns the clock that the GPU never exceeds although the site told of no limit, 0 for none.
func (g *groundState) suspected() dvfsmodel.MHz {
	if g.siteSet.Core > 0 {
		return 0
	}
	return g.limit
}

// valueOfUnknownOrigin returns which value was found of which nobody knows who set it.
func (g *groundState) valueOfUnknownOrigin() string {
	if g.base == nil {
		return ""
	}
	return g.base.Unsure
}

// budgetShare is what a budget leaves a GPU.
type budgetShare struct {
	watts dvfsmodel.Watt // of the lease
	ends  time.Time      // of the lease
	// isReleased tells that the limit was given back by hand, or at the end, whatever is on file.
	isReleased bool
	others     gpu.Value // the limit that somebody else has set; 0: nobody
	refused    time.Time // when the driver refused the limit; it is tried again some time later
	refusal    error     // by which it did
}

// othersLimit says what somebody else's limit is that is above the lease; "" if there is none.
func (s *budgetShare) othersLimit() string {
	if s.others == 0 || s.watts == 0 || s.others <= gpu.Value(s.watts) {
		return ""
	}
	return fmt.Sprintf("its power limit stays at %s, as somebody else set it, above its %s of the power budget",
		gpu.PowerLimit.Words(s.others), gpu.PowerLimit.Words(gpu.Value(s.watts)))
}

// isRefused reports whether the driver refused the limit a short while ago.
func (s *budgetShare) isRefused() bool { return time.Since(s.refused) < refusalPause }
