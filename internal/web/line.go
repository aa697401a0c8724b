package web

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Bounds of the line in which people wait for their plans. With a page's turn and
// the plan itself a request has 15 seconds.
const (
	maxQueuedPlans   = 8
	planQueueTimeout = 5 * time.Second
)

// Why a plan isn't made.
var (
	errPlanQueueFull = errors.New("others wait for their plans, too")
	errSuperseded    = errors.New("the viewer asked for another plan since")
)

// planWaitlist is where people wait for the one plan that is made at a time: first come
// first served, and each with one plan, the last that was asked for.
type planWaitlist struct {
	planning chan struct{} // of the one plan that is made
	mu       sync.Mutex
	waiters  map[string]*waitTicket // by viewer
}

// waitTicket is one of a line.
type waitTicket struct{ cancel context.CancelCauseFunc }

func newPlanWaitlist() *planWaitlist {
	return &planWaitlist{planning: make(chan struct{}, 1), waiters: make(map[string]*waitTicket)}
}

// acquire waits until a plan of a viewer's may be made; done tells that it is. The
// error is [errPlanQueueFull], [errSuperseded], or that of the context.
func (l *planWaitlist) acquire(ctx context.Context, viewer string) (done func(), err error) {
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	own := &waitTicket{leave}
	if !l.enqueue(viewer, own) {
		return nil, errPlanQueueFull
	}
	defer l.leave(viewer, own)
	timer := time.NewTimer(planQueueTimeout)
	defer timer.Stop()
	select {
	case l.planning <- struct{}{}:
		return func() { <-l.planning }, nil
	case <-timer.C:
		return nil, errPlanQueueFull
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// enqueue puts a viewer at the end, in place of where the same viewer waited. It is
// false where the line is full.
func (l *planWaitlist) enqueue(viewer string, own *waitTicket) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.waiters[viewer]
	switch {
	case before != nil:
		before.cancel(errSuperseded)
	case len(l.waiters) >= maxQueuedPlans:
		return false
	}
	l.waiters[viewer] = own
	return true
}

// leave takes a place away, unless the viewer has another one by now.
func (l *planWaitlist) leave(viewer string, own *waitTicket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiters[viewer] == own {
		delete(l.waiters, viewer)
	}
}
