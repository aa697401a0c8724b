package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/epplan/epplan/live"
)

// reconciler has the holder bring GPUs to what their runs want: each change of a run ends in
// it. It has no state of its own.
type reconciler struct {
	gpus        *GPUSet
	runs        *RunSet
	holder      *holder
	undoTimeout time.Duration // of a GPU's turn when something is undone
}

// target returns what a card's open runs come to, and the run that is named in the
// journal for it, the youngest.
func (s *reconciler) target(c *managedGPU) (want lock, run live.Run) {
	table, err := c.clocks()
	want, run = s.runs.wantedLock(c)
	if err != nil || !supports(table, want.Setting) {
		want = lock{}
	}
	return s.holder.base.limitToBudget(c, c.withoutRefused(want)), run
}

// reconcile brings cards to what their runs want. Where that fails, every run
// on the card is put to default clocks, on all its GPUs.
func (s *reconciler) reconcile(ctx context.Context, cards []*managedGPU) error {
	failed, err := s.reconcileEach(ctx, cards)
	if len(failed) == 0 {
		return nil
	}
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.undoTimeout)
	defer cancel()
	_, undoing := s.reconcileEach(undo, s.giveUp(failed, notLockedReason(err)))
	return errors.Join(err, undoing)
}

// reconcileEach reconciles cards side by side and names those where it failed.
func (s *reconciler) reconcileEach(
	ctx context.Context, cards []*managedGPU,
) (failed []*managedGPU, err error) {
	errs := make([]error, len(cards))
	s.gpus.inParallel(cards, func(i int, c *managedGPU) { errs[i] = s.reconcileOne(ctx, c) })
	for i, c := range cards {
		if errs[i] != nil {
			failed = append(failed, c)
		}
	}
	return failed, errors.Join(errs...)
}

// giveUp puts the runs on cards to default clocks and returns all their cards
// with the given ones.
func (s *reconciler) giveUp(cards []*managedGPU, why live.NotLocked) []*managedGPU {
	return s.gpus.byUUIDs(s.runs.giveUp(cards, why))
}

// reconcileOne brings one card to what its runs want.
func (s *reconciler) reconcileOne(ctx context.Context, c *managedGPU) error {
	if err := c.acquire(ctx); err != nil {
		return err
	}
	defer c.releaseTurn()
	want, run := s.target(c)
	switch {
	case c.externalReason() != "" && s.runs.isOpenOn(c):
		return s.holder.giveBackReported(c) // somebody else's clocks stay while the runs last
	case want == lock{}:
		return s.release(c)
	case c.isLockedAt(want):
		return nil
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("lock %s: %w", c.uuid, context.Cause(ctx))
	}
	refused, err := s.holder.lockAt(c, want, &run)
	s.eachRunOn(c, func(r *openRun) { r.noteRefused(refused) })
	return err
}

// release gives a card back that no run wants locked. Word that another process gave its clocks back stays
// while runs are open on it that haven't heard of it: they may want it locked again.
func (s *reconciler) release(c *managedGPU) error {
	held := c.journalEntry() != nil
	untold := false
	s.eachRunOn(c, func(r *openRun) { untold = untold || r.handsOff == "" })
	if _, err := s.holder.release(c); err != nil || !held || untold {
		return err
	}
	return s.holder.journal.removeReturned(c.uuid)
}

// reactToLock does what a reading wants that showed how a card keeps its lock: nothing while
// the lock may come back, else it is set again, left to somebody else, or given up.
func (s *reconciler) reactToLock(ctx context.Context, c *managedGPU, shown error) error {
	switch {
	case errors.Is(shown, errFarBelow), errors.Is(shown, errForeignClocks):
		s.note(c, shown.Error())
		return nil
	default:
		// It was epd restore.
		if heeded, err := s.applyReturned(ctx, []string{c.uuid}); len(heeded) > 0 {
			return err
		}
	}
	switch {
	case errors.Is(shown, errLockLost):
		c.forgetLock()
		if err := s.reconcile(ctx, []*managedGPU{c}); err != nil {
			return err
		}
		s.note(c, shown.Error()+", and is locked again")
	case errors.Is(shown, ErrExternalChange), errors.Is(shown, errNoEffect), errors.Is(shown, errLimitChanged):
		return s.reconcile(ctx, s.giveUp([]*managedGPU{c}, notLockedReason(shown)))
	}
	return nil
}

// note notes something of a card's clocks for the runs on it.
func (s *reconciler) note(c *managedGPU, text string) {
	s.eachRunOn(c, func(r *openRun) { r.note(text) })
}

// eachRunOn does something with each run on a card, while nothing else is done with runs.
func (s *reconciler) eachRunOn(c *managedGPU, do func(*openRun)) {
	s.runs.eachOpen(func(r *openRun) {
		if slices.Contains(r.GPUs, c.uuid) {
			do(r)
		}
	})
}

// isUntouchable reports whether the card's clocks are to stay as they are: a run wants
// it locked, or somebody else set them and runs last.
func (s *reconciler) isUntouchable(c *managedGPU) bool {
	want, _ := s.target(c)
	byRuns, _ := s.runs.wantedLock(c)
	isHeld := want != (lock{}) && (byRuns != (lock{}) || c.isLockedAt(want)) // else a budget couldn't yet
	return isHeld || c.externalReason() != "" && s.runs.isOpenOn(c)
}

// reconcileLate reconciles a GPU whose driver has come back: what it was asked for in
// vain has happened by now. Beside the agent of this journal that is the agent's to do.
func (s *reconciler) reconcileLate(c *managedGPU) {
	if c.ownedByTwin {
		return
	}
	_ = s.reconcile(context.Background(), []*managedGPU{c}) // what fails stays in the journal
}

// applyReturned puts runs to default clocks whose GPUs' clocks another process gave back, of all
// GPUs or some, and names those GPUs.
func (s *reconciler) applyReturned(ctx context.Context, uuids []string) (heeded []string, err error) {
	words, err := s.holder.journal.returnedGPUs()
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, uuid := range words {
		if uuids != nil && !slices.Contains(uuids, uuid) {
			continue
		}
		cards := s.gpus.byUUIDs([]string{uuid})
		for _, c := range cards { // by hand: a budget's limit is back with the next lease
			c.ground.note(func(g *groundState) { g.share.isReleased = true })
		}
		affected := s.giveUp(cards, notLockedReason(errReturned))
		for _, c := range cards {
			c.clearExternalChange() // nobody else set them
		}
		err := s.reconcile(ctx, affected)
		if err == nil {
			err = s.holder.journal.removeReturned(uuid)
		}
		heeded, errs = append(heeded, uuid), append(errs, err)
	}
	return heeded, errors.Join(errs...)
}
