package daemon

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/epplan/epplan/slurm/hooks"
)

// hookOrder has a job's Prolog and Epilog on a node taken as they were sent. Where the agent stood still from
// before the one until after the other, both wait to be read, and are read at once. By when a hook stops to
// wait is in the order of when it was sent; hooks that don't say so are taken as they come.
type hookOrder struct {
	mu      sync.Mutex // guards what follows
	prologs map[runOf]pendingHook
	epilogs map[runOf]epilogRead // of jobs without a run
}

// epilogRead is an Epilog that was read.
type epilogRead struct {
	deadline int64 // in Unix milliseconds
	at       time.Time
}

// pendingHook is a Prolog that is being answered.
type pendingHook struct {
	deadline int64
	done     chan struct{}
}

// remembered is how long an Epilog may come before the Prolog that was sent before it.
const remembered = 10 * time.Minute

// isOld reports whether a Prolog that was sent before would have been read by now, whatever the machine's
// clock was set to meanwhile.
func (e epilogRead) isOld() bool { return time.Since(e.at) > remembered }

func newHookOrder() *hookOrder {
	return &hookOrder{prologs: make(map[runOf]pendingHook), epilogs: make(map[runOf]epilogRead)}
}

// prolog begins a Prolog, which calls what is returned at its end; false: the Epilog of its run came before.
func (h *hookOrder) prolog(e *hooks.Event) (end func(), ok bool) {
	key := runOf{uint32(e.Job), e.Node}
	h.mu.Lock()
	defer h.mu.Unlock()
	if last := h.epilogs[key]; e.Deadline > 0 && e.Deadline <= last.deadline && !last.isOld() {
		return nil, false
	}
	one := pendingHook{e.Deadline, make(chan struct{})}
	h.prologs[key] = one
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.prologs[key].done == one.done {
			delete(h.prologs, key)
		}
		close(one.done)
	}, true
}

// epilog begins an Epilog, once a Prolog under way that was sent before it has ended. What is returned is
// told whether there was a run.
func (h *hookOrder) epilog(ctx context.Context, e *hooks.Event) (end func(found bool)) {
	key := runOf{uint32(e.Job), e.Node}
	h.mu.Lock()
	h.epilogs[key] = epilogRead{e.Deadline, time.Now()}
	one, waits := h.prologs[key]
	h.mu.Unlock()
	if waits && one.deadline <= e.Deadline {
		select {
		case <-one.done:
		case <-ctx.Done():
		}
	}
	return func(found bool) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if found {
			delete(h.epilogs, key)
		}
		maps.DeleteFunc(h.epilogs, func(_ runOf, e epilogRead) bool { return e.isOld() })
	}
}
