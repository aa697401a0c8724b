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
	mostInLine = 8
	lineBound  = 5 * time.Second
)

// Why a plan isn't made.
var (
	errLine  = errors.New("others wait for their plans, too")
	errNewer = errors.New("the viewer asked for another plan since")
)

// line is where people wait for the one plan that is made at a time: first come
// first served, and each with one plan, the last that was asked for.
type line struct {
	turn    chan struct{} // of the one plan that is made
	mu      sync.Mutex
	waiting map[string]*place // by viewer
}

// place is one of a line.
type place struct{ leave context.CancelCauseFunc }

func newLine() *line { return &line{turn: make(chan struct{}, 1), waiting: make(map[string]*place)} }

// enter waits until a plan of a viewer's may be made; done tells that it is. The
// error is [errLine], [errNewer], or that of the context.
func (l *line) enter(ctx context.Context, viewer string) (done func(), err error) {
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	own := &place{leave}
	if !l.join(viewer, own) {
		return nil, errLine
	}
	defer l.quit(viewer, own)
	timer := time.NewTimer(lineBound)
	defer timer.Stop()
	select {
	case l.turn <- struct{}{}:
		return func() { <-l.turn }, nil
	case <-timer.C:
		return nil, errLine
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// join puts a viewer at the end, in place of where the same viewer waited. It is
// false where the line is full.
func (l *line) join(viewer string, own *place) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.waiting[viewer]
	switch {
	case before != nil:
		before.leave(errNewer)
	case len(l.waiting) >= mostInLine:
		return false
	}
	l.waiting[viewer] = own
	return true
}

// quit takes a place away, unless the viewer has another one by now.
func (l *line) quit(viewer string, own *place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting[viewer] == own {
		delete(l.waiting, viewer)
	}
}
