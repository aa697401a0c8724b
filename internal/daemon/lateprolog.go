package daemon

import (
	"context"
	"sync"
	"time"

	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/slurm/hooks"
)

// latePrologs are the Prologs of jobs whose GPUs were still being opened when their hooks had
// to be answered. They are gone through once the GPUs are there, unless the job ends before.
type latePrologs struct {
	agent *agent.Agent

	mu    sync.Mutex // guards what follows
	byRun map[runOf]lateProlog
}

// lateProlog is one of them, under way.
type lateProlog struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// prologReserve is what a Prolog needs of its hook's time once its GPUs are opened: for its
// decision, and for the driver.
const prologReserve = 1200 * time.Millisecond

// wait waits for the GPUs as long as a Prolog's hook allows; false: they aren't opened then.
func (l *latePrologs) wait(ctx context.Context, e *hooks.Event, now time.Time) bool {
	until := now.Add(maxHookTime)
	if e.Deadline > 0 {
		until = hookDeadline(now, time.UnixMilli(e.Deadline))
	}
	ctx, cancel := context.WithDeadline(ctx, until.Add(-prologReserve))
	defer cancel()
	return l.agent.GPUs().WaitOpened(ctx) == nil
}

// begin begins one, after one of the same job before it; ended is to be called at its end.
func (l *latePrologs) begin(ctx context.Context, key runOf) (_ context.Context, ended func()) {
	l.end(ctx, key)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	one := lateProlog{cancel, make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byRun[key] = one
	return ctx, func() {
		cancel()
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.byRun[key].done == one.done {
			delete(l.byRun, key)
		}
		close(one.done)
	}
}

// end ends that of a job, and waits for it.
func (l *latePrologs) end(ctx context.Context, key runOf) {
	l.mu.Lock()
	one, ok := l.byRun[key]
	l.mu.Unlock()
	if !ok {
		return
	}
	one.cancel()
	select {
	case <-one.done:
	case <-ctx.Done():
	}
}

// stop ends all, without waiting.
func (l *latePrologs) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.byRun {
		one.cancel()
	}
}

// prologWhenOpened goes through a Prolog once the GPUs are opened.
func (d *AgentServer) prologWhenOpened(ctx context.Context, e *hooks.Event, began time.Time) {
	finish, ok := d.beginHook(hooks.Prolog)
	if !ok {
		return
	}
	ctx, ended := d.waiting.begin(ctx, runOf{uint32(e.Job), e.Node})
	event := *e
	event.Deadline = 0 // nobody waits
	go func() {
		defer finish()
		defer ended()
		if d.options.Agent.GPUs().WaitOpened(ctx) != nil {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, requestBound)
		defer cancel()
		answer := d.openRun(ctx, &event, began)
		d.options.Log.Info("the GPUs of a job are opened", "job", e.Job, "after", time.Since(began),
			"locked", answer.Applied, "reason", string(answer.Reason))
	}()
}
