package decide

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/epplan/epplan/internal/pause"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
)

// writer writes jobs and decisions behind. Several goroutines hand them to the
// store, which commits them together.
type writer struct {
	options *Options
	began   time.Time
	queue   chan writeTask
	waiting atomic.Int64 // entries not yet written
	// When the store last answered, or the queue stopped being empty: since began.
	progressAt    atomic.Int64
	failed        atomic.Pointer[error] // why the last write failed; nil: it didn't
	failedForGood atomic.Bool           // it failed for good: the database is damaged
	lost          atomic.Int64
}

// writeTask is a decision to write, and the job that it is for; either may be nil.
type writeTask struct {
	job      *record.Job
	decision *record.Decision
	decided  *Decided
}

const (
	writeQueue = 1 << 14
	writers    = 64
	retryWrite = 200 * time.Millisecond
)

func newWriter(options *Options) *writer {
	return &writer{options: options, queue: make(chan writeTask, writeQueue), began: time.Now()}
}

// noteProgress notes that the store is not behind now.
func (w *writer) noteProgress() { w.progressAt.Store(int64(time.Since(w.began))) }

// run writes what is put until the context ends.
func (w *writer) run(ctx context.Context) {
	var running sync.WaitGroup
	for range writers {
		running.Go(func() { w.work(ctx) })
	}
	running.Wait()
}

// put hands an entry over, or says that there is no room.
func (w *writer) put(e writeTask) bool {
	w.options.Unwritten.Add()
	if w.waiting.Add(1) == 1 {
		w.noteProgress()
	}
	select {
	case w.queue <- e:
		return true
	default:
		w.done(&e)
		w.lost.Add(1)
		return false
	}
}

func (w *writer) done(e *writeTask) {
	if e.decided != nil {
		close(e.decided.stored)
	}
	w.waiting.Add(-1)
	w.options.Unwritten.Done()
}

// trouble says why records aren't being written: the store can't, the last write
// failed for good, or nothing was written for longer than the bound, though
// something waits.
func (w *writer) trouble(bound time.Duration) error {
	if err := w.options.Records.WriteProblem(); err != nil {
		return err
	}
	if w.failedForGood.Load() {
		if why := w.failed.Load(); why != nil {
			return *why
		}
	}
	if w.waiting.Load() == 0 {
		return nil
	}
	if time.Since(w.began)-time.Duration(w.progressAt.Load()) <= bound {
		return nil
	}
	if why := w.failed.Load(); why != nil {
		return *why
	}
	return errors.New("the store doesn't answer")
}

func (w *writer) work(ctx context.Context) {
	for {
		select {
		case e := <-w.queue:
			w.write(ctx, &e)
			w.done(&e)
		case <-ctx.Done():
			w.drain()
			return
		}
	}
}

// drain gives up what is left, so that nobody waits for it.
func (w *writer) drain() {
	for {
		select {
		case e := <-w.queue:
			w.lost.Add(1)
			w.done(&e)
		default:
			return
		}
	}
}

// write tries until the store takes the entry, refuses it, or the context ends.
func (w *writer) write(ctx context.Context, e *writeTask) {
	for {
		err := w.writeOnce(ctx, e)
		switch {
		case err == nil:
			w.noteProgress()
			w.failed.Store(nil)
			w.failedForGood.Store(false)
			return
		case !isTransient(err):
			w.lost.Add(1)
			invalid := errors.Is(err, record.ErrInvalid) // that is about this one alone
			if !invalid {
				w.failed.Store(&err)
			}
			if invalid || !w.failedForGood.Swap(true) {
				w.options.Log.Error("a decision can't be stored", "error", err)
			}
			return
		}
		w.failed.Store(&err)
		if pause.For(ctx, retryWrite) != nil {
			w.lost.Add(1)
			return
		}
	}
}

// isTransient reports whether what keeps a record from being written may pass.
func isTransient(err error) bool {
	return errors.Is(err, store.ErrBusy) || errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrMoved)
}

func (w *writer) writeOnce(ctx context.Context, e *writeTask) error {
	if e.job != nil {
		if err := w.options.Records.PutJob(ctx, e.job); err != nil {
			return err
		}
		e.job = nil
	}
	if e.decision == nil {
		return nil
	}
	id, err := w.options.Records.PutDecision(ctx, e.decision)
	if err == nil && e.decided != nil {
		e.decided.id = id
	}
	return err
}
