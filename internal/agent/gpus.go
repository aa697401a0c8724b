package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/epplan/epplan/gpu"
)

// ErrNoGPU tells that there is no such GPU here.
var ErrNoGPU = errors.New("no such GPU here")

// GPUSet is the GPUs of a node that an agent looks after: found, claimed from other
// processes, and opened anew when their driver was reloaded. Its methods may be called by
// several goroutines.
type GPUSet struct {
	library     gpu.Library
	claims      Claims                           // nil: there are no other processes
	openTimeout time.Duration                    // of finding all GPUs
	newGPU      func(dev gpu.Device) *managedGPU // makes one known that wasn't
	maxParallel int                              // GPUs that are called at the same time

	mu           sync.Mutex             // guards what follows; a GPU's own mu is taken after it
	known        map[string]*managedGPU // by UUID; none is ever taken out
	claimed      map[string]func()      // by UUID: gives the GPU up
	restoreOnly  bool                   // it gives clocks back and does nothing else
	inventory    []gpu.Identity         // as the driver counted them last; empty where one couldn't be opened
	partlyOpened bool                   // the last opening failed, of one GPU or all
	hungCalls    int                    // calls that were to find GPUs and haven't come back in time
	opened       chan struct{}          // closed once all of them have; nil: there are none
	closed       bool                   // no GPU is made known any more
}

// open gets handles of all GPUs, and waits for that no longer than the time to undo
// something: without persistence mode eight GPUs take half a minute. What is found later
// is made known then ([GPUSet.WaitOpened]). Cards of GPUs that aren't found keep theirs. While
// a call hangs, no other is made: sweeps and samples don't leave ever more goroutines to a
// driver that never answers.
func (s *GPUSet) open() error {
	s.mu.Lock()
	deaf := s.hungCalls
	s.mu.Unlock()
	if deaf > 0 {
		return fmt.Errorf("open the GPUs: %w", ErrStuck)
	}
	answers := make(chan callResult[[]gpu.Device], 1)
	go func() {
		found, err := s.library.Devices()
		answers <- callResult[[]gpu.Device]{found, err}
	}()
	timer := time.NewTimer(s.openTimeout)
	defer timer.Stop()
	select {
	case found := <-answers:
		return s.addFound(found)
	case <-timer.C:
	}
	s.countHung(1)
	s.noteOpening(ErrStuck)
	go func() {
		_ = s.addFound(<-answers) // what couldn't be opened is tried again by the next sweep
		s.countHung(-1)
	}()
	return fmt.Errorf("open the GPUs: %w", ErrStuck)
}

// addFound makes the GPUs known that a call found, whatever became of the others.
func (s *GPUSet) addFound(found callResult[[]gpu.Device]) error {
	err := s.add(found.value)
	if found.err != nil {
		err = errors.Join(fmt.Errorf("open the GPUs: %w", found.err), err)
	}
	s.noteOpening(err)
	return err
}

// WaitOpened waits until no call that is to find GPUs hangs, which is at once unless the
// driver takes long.
func (s *GPUSet) WaitOpened(ctx context.Context) error {
	s.mu.Lock()
	opened := s.opened
	s.mu.Unlock()
	if opened == nil {
		return nil
	}
	select {
	case <-opened:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("open the GPUs: %w", context.Cause(ctx))
	}
}

// noteOpening notes how opening the GPUs went.
func (s *GPUSet) noteOpening(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.partlyOpened = err != nil
}

// isIncomplete reports whether a GPU may have come, or come back, since the GPUs were
// opened last.
func (s *GPUSet) isIncomplete() bool {
	s.mu.Lock()
	partly := s.partlyOpened
	s.mu.Unlock()
	cards := s.all()
	return partly || len(cards) == 0 || slices.ContainsFunc(cards, (*managedGPU).isLost)
}

// countHung counts calls that hang, or that have come back after all.
func (s *GPUSet) countHung(change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hungCalls += change
	switch {
	case s.hungCalls > 0 && s.opened == nil:
		s.opened = make(chan struct{})
	case s.hungCalls == 0 && s.opened != nil:
		close(s.opened)
		s.opened = nil
	}
}

// add makes GPUs known, those that could be opened and that no other process looks
// after. One whose name can't be a file's can't be journalled, and is left alone.
func (s *GPUSet) add(found []gpu.Device) error {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return nil
	}
	inventory := make([]gpu.Identity, len(found))
	var uuids []string
	var errs []error
	for i, dev := range found {
		if dev == nil {
			continue
		}
		inventory[i] = dev.Identity()
		if uuid := inventory[i].UUID; isFileName(uuid) {
			uuids = append(uuids, uuid)
		} else {
			errs = append(errs, fmt.Errorf("open the GPUs: no name to journal %q by", uuid))
		}
	}
	failed := s.claim(uuids)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(found) > 0 {
		s.inventory = matchInventory(inventory, s.inventory)
	}
	for i, dev := range found {
		uuid := inventory[i].UUID
		if !slices.Contains(uuids, uuid) {
			continue
		}
		claiming := failed[uuid]
		if c, ok := s.known[uuid]; ok {
			c.reopen(dev)
			continue
		}
		if claiming != nil && (!s.restoreOnly || errors.Is(claiming, ErrTaken)) {
			errs = append(errs, claiming)
			continue
		}
		s.known[uuid] = s.newGPU(dev)
		s.known[uuid].ownedByTwin = errors.Is(claiming, ErrSameJournal)
	}
	return errors.Join(errs...)
}

// matchInventory returns an inventory in which GPUs that couldn't be opened are those that were in
// their places before, if all others are where they were.
func matchInventory(now, before []gpu.Identity) []gpu.Identity {
	if len(now) != len(before) {
		return now
	}
	for i := range now {
		if now[i] != before[i] && now[i] != (gpu.Identity{}) {
			return now
		}
	}
	return before
}

// byUUID returns a GPU, nil where there is none of that name.
func (s *GPUSet) byUUID(uuid string) *managedGPU {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[uuid]
}

// byUUIDs returns the GPUs of a list that are here, in order, each once.
func (s *GPUSet) byUUIDs(uuids []string) []*managedGPU {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*managedGPU
	for _, uuid := range slices.Compact(slices.Sorted(slices.Values(uuids))) {
		if c, ok := s.known[uuid]; ok {
			found = append(found, c)
		}
	}
	return found
}

// all returns all GPUs, in order.
func (s *GPUSet) all() []*managedGPU {
	s.mu.Lock()
	uuids := slices.Collect(maps.Keys(s.known))
	s.mu.Unlock()
	return s.byUUIDs(uuids)
}

// inParallel does something with several GPUs at the same time, each with its place in the
// list.
func (s *GPUSet) inParallel(cards []*managedGPU, do func(i int, c *managedGPU)) {
	s.atOnce(len(cards), func(i int) { do(i, cards[i]) })
}

// atOnce does something n times at once, but no more often than GPUs may be called.
func (s *GPUSet) atOnce(n int, do func(i int)) {
	var group errgroup.Group
	group.SetLimit(s.maxParallel)
	for i := range n {
		group.Go(func() error {
			do(i)
			return nil
		})
	}
	_ = group.Wait() // nothing fails
}

// claim makes those of some GPUs this process's own that aren't yet. By UUID: how it
// went. A process that only gives clocks back goes on beside an agent of the same
// journal, and where nobody can tell whose a GPU is.
func (s *GPUSet) claim(uuids []string) map[string]error {
	failed := make(map[string]error, len(uuids))
	if s.claims == nil {
		return failed
	}
	for _, uuid := range uuids {
		s.mu.Lock()
		_, ours := s.claimed[uuid]
		s.mu.Unlock()
		if ours {
			continue
		}
		release, err := s.claims.Claim(uuid)
		if err != nil {
			failed[uuid] = err
			continue
		}
		s.mu.Lock()
		s.claimed[uuid] = release
		s.mu.Unlock()
	}
	return failed
}

// release gives up all GPUs, for other processes to look after.
func (s *GPUSet) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, release := range s.claimed {
		release()
	}
	clear(s.claimed)
}

// callRenewed asks a second time, with new handles of all GPUs, when the driver was
// reloaded.
func callRenewed[T any](s *GPUSet, ask func() (T, error)) (T, error) {
	value, err := ask()
	if !errors.Is(err, gpu.ErrReloaded) {
		return value, err
	}
	if err := s.open(); err != nil {
		return value, err
	}
	return ask()
}

// CallGPU calls the driver of a GPU in the way of the agent itself: it waits no
// longer than the call timeout, makes no call while one hangs, and opens the
// GPU anew when the driver was reloaded.
func CallGPU[T any](s *GPUSet, uuid string, what func(gpu.Device) (T, error)) (T, error) {
	c := s.byUUID(uuid)
	if c == nil {
		var none T
		return none, fmt.Errorf("%s: %w", uuid, ErrNoGPU)
	}
	return callRenewed(s, func() (T, error) { return call(c, what) })
}

// CallGPUs is [CallGPU] for several GPUs side by side, in their order: ones whose driver hangs take no longer
// than one.
func CallGPUs[T any](
	s *GPUSet, uuids []string, what func(gpu.Device) (T, error),
) (answers []T, errs []error) {
	answers, errs = make([]T, len(uuids)), make([]error, len(uuids))
	s.atOnce(len(uuids), func(i int) { answers[i], errs[i] = CallGPU(s, uuids[i], what) })
	return answers, errs
}

// Clocks returns the table of a GPU's clocks, read once.
func (s *GPUSet) Clocks(uuid string) (gpu.Clocks, error) {
	c := s.byUUID(uuid)
	if c == nil {
		return gpu.Clocks{}, fmt.Errorf("%s: %w", uuid, ErrNoGPU)
	}
	table, err := callRenewed(s, c.clocks)
	if err != nil {
		return gpu.Clocks{}, err
	}
	return *table, nil
}

// Identities returns the GPUs that the agent looks after, in the order of their UUIDs.
func (s *GPUSet) Identities() []gpu.Identity {
	cards := s.all()
	ids := make([]gpu.Identity, len(cards))
	for i, c := range cards {
		ids[i] = c.identity()
	}
	return ids
}

// Divided returns the UUIDs of the GPUs that are divided into parts now (MIG). A GPU that doesn't answer
// isn't among them.
func (s *GPUSet) Divided() (uuids []string) {
	for _, id := range s.Identities() {
		uuids = append(uuids, id.UUID)
	}
	sharing, errs := CallGPUs(s, uuids, gpu.Device.Sharing)
	divided := uuids[:0]
	for i, uuid := range uuids {
		if errs[i] == nil && sharing[i].MIG {
			divided = append(divided, uuid)
		}
	}
	return divided
}

// Inventory returns the GPUs as the driver counted them when they were opened last, in its
// order. One that couldn't be opened is empty in its place. Those that others look
// after are among them.
func (s *GPUSet) Inventory() []gpu.Identity {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.inventory)
}
