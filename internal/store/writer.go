package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

const (
	// maxBatch is how many writes one transaction takes at most.
	maxBatch = 512
	// batchWait is how long a transaction that several callers share waits for
	// more of them: far less than what the disk takes to make it durable.
	batchWait = 500 * time.Microsecond
)

// request is a write on its way to the writer.
type request struct {
	ctx   context.Context //nolint:containedctx // the writer skips what nobody waits for
	apply func(ctx context.Context, conn *sql.Conn) error
	done  chan error // buffered: takes one answer, whether somebody still waits or not
	err   error      // of apply; the answer once the transaction is committed
}

// do has the writer apply a change, and returns once it is committed. When ctx
// ends first the change may still be made: all writes can be repeated.
func (db *database) do(ctx context.Context, apply func(context.Context, *sql.Conn) error) error {
	r := &request{ctx: ctx, apply: apply, done: make(chan error, 1)}
	if err := db.enqueue(r); err != nil {
		return err
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// write is do for a change with a result. The result is the change's alone
// until do has its answer, so that a caller who leaves early races with nobody.
func write[T any](
	ctx context.Context, db *database, apply func(context.Context, *sql.Conn) (T, error),
) (T, error) {
	var result, none T
	err := db.do(ctx, func(ctx context.Context, conn *sql.Conn) (err error) {
		result, err = apply(ctx, conn)
		return err
	})
	if err != nil {
		return none, err
	}
	return result, nil
}

// enqueue puts a request into the queue.
func (db *database) enqueue(r *request) error {
	db.mu.RLock()
	defer db.mu.RUnlock()
	if db.closed {
		return ErrClosed
	}
	if damage := db.damage.Load(); damage != nil {
		return *damage
	}
	select {
	case db.requests <- r:
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

// writeLoop is the only goroutine that writes, until the queue is closed. Its context
// is no caller's: half a batch must not end with one of them.
func (db *database) writeLoop(ctx context.Context) {
	defer close(db.done)
	idle := time.NewTicker(lookEvery)
	defer idle.Stop()
	batch := make([]*request, 0, maxBatch)
	for {
		var first *request
		select {
		case first = <-db.requests:
		case <-idle.C:
			_ = db.checkFiles(ctx) // Trouble tells
			continue
		}
		if first == nil { // closed
			_ = db.checkFiles(ctx)
			return
		}
		batch = db.gather(append(batch[:0], first))
		err := db.commit(ctx, batch)
		db.noteDamage(err)
		for i, r := range batch {
			if err != nil {
				r.err = err
			}
			r.done <- r.err
			batch[i] = nil
		}
	}
}

// gather adds to a batch what else is waiting, and what comes soon after if
// there is more than one caller.
func (db *database) gather(batch []*request) []*request {
	batch = db.takeWaiting(batch)
	if len(batch) == 1 || len(batch) == maxBatch {
		return batch
	}
	timer := time.NewTimer(batchWait)
	defer timer.Stop()
	for len(batch) < maxBatch {
		select {
		case r, open := <-db.requests:
			if !open {
				return batch
			}
			batch = append(batch, r)
		case <-timer.C:
			return batch
		}
	}
	return batch
}

// takeWaiting adds to a batch what is waiting now.
func (db *database) takeWaiting(batch []*request) []*request {
	for len(batch) < maxBatch {
		select {
		case r, open := <-db.requests:
			if !open {
				return batch
			}
			batch = append(batch, r)
		default:
			return batch
		}
	}
	return batch
}

// commit applies a batch in one transaction. A change that fails alone is
// undone alone and has its error in the request; what it returns failed all.
// What is committed counts if the database is at its path even then.
func (db *database) commit(ctx context.Context, batch []*request) (err error) {
	if damage := db.damage.Load(); damage != nil {
		return *damage
	}
	if err := db.checkFiles(ctx); err != nil {
		return err
	}
	if _, err := db.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("begin: %w", typedError(err))
	}
	defer func() {
		if err != nil {
			// SQLite may have rolled back by itself; then this has nothing to do.
			_, _ = db.conn.ExecContext(ctx, "ROLLBACK")
		}
	}()
	for _, r := range batch {
		if r.err = r.ctx.Err(); r.err != nil {
			continue
		}
		if err := db.applyOne(ctx, r); err != nil {
			return err
		}
	}
	if _, err := db.conn.ExecContext(ctx, "COMMIT"); err != nil {
		return fmt.Errorf("commit: %w", typedError(err))
	}
	return db.checkFiles(ctx)
}

// applyOne applies one change under a savepoint.
func (db *database) applyOne(ctx context.Context, r *request) error {
	if _, err := db.conn.ExecContext(ctx, "SAVEPOINT one"); err != nil {
		return typedError(err)
	}
	if err := typedError(r.apply(ctx, db.conn)); err != nil {
		if breaksBatch(err) {
			return err
		}
		r.err = err
		if _, err := db.conn.ExecContext(ctx, "ROLLBACK TO one"); err != nil {
			return typedError(err)
		}
	}
	_, err := db.conn.ExecContext(ctx, "RELEASE one")
	return typedError(err)
}
