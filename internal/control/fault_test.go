package control

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// lock holds the database as another process would, until the function that is
// returned is called.
func (r *rig) lock() (unlock func()) {
	r.t.Helper()
	ctx := context.Background()
	db, err := sql.Open("sqlite3", "file:"+r.path)
	if err != nil {
		r.t.Fatal(err)
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		r.t.Fatal(err)
	}
	return func() {
		_, err := conn.ExecContext(ctx, "ROLLBACK")
		if err := errors.Join(err, conn.Close(), db.Close()); err != nil {
			r.t.Error(err)
		}
	}
}

func TestWithALockedDatabaseDecisionsAreDefaultClocksAtOnceAndStoredLater(t *testing.T) {
	r := newRig(t, func(o *Options) { o.StoreWait = 10 * time.Millisecond })
	for id := range slurm.JobID(4) {
		r.run(id+1, memoryBound())
	}
	unlock := r.lock()
	const bound = time.Second // on a machine that is busy with tests; SQLite waits for longer
	id := slurm.JobID(100)
	for until := time.Now().Add(time.Minute); ; id++ {
		r.job(id, nil)
		begin := time.Now()
		d := r.decide(ask(id))
		if took := time.Since(begin); took > bound {
			t.Errorf("job %d: %s, want at most %s", id, took, bound)
		}
		if !d.Apply {
			if !strings.Contains(d.Reason, "records can't be written") || d.Core != 0 ||
				d.Arm != live.ArmExcluded {
				t.Errorf("%+v", d)
			}
			break
		}
		if time.Now().After(until) {
			t.Fatal("clocks are still set after a minute without records")
		}
	}
	if s := r.status(); s.Trouble == "" || s.Unwritten == 0 {
		t.Errorf("%+v", s)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	o := r.ran(r.decide(ask(100)), "run-100", memoryBound())
	if _, err := r.Record(ctx, o); err == nil {
		t.Error("an outcome was taken that can't be stored")
	}
	unlock()
	r.flush()
	for job := slurm.JobID(100); job <= id; job++ {
		all, err := r.store.DecisionsOfJob(context.Background(), "alpha", int64(job))
		if err != nil || len(all) != 1 {
			t.Errorf("job %d: %d decisions stored, %v", job, len(all), err)
		}
	}
	r.record(o, 0)
	r.job(id+1, nil)
	if d := r.decide(ask(id + 1)); !d.Apply {
		t.Errorf("after the lock has gone: %s", d.Reason)
	}
}

// hung is a store whose reads never answer.
type hung struct{ everything }

func (hung) DecisionsOfJob(context.Context, string, int64) ([]record.Decision, error) { select {} }

func TestAStoreThatHangsDoesNotHoldAPrologUp(t *testing.T) {
	r := newRig(t, func(o *Options) {
		o.Records, o.StoreWait = recordsIn(hung{o.everything()}), 20*time.Millisecond
	})
	begin := time.Now()
	d := r.decide(ask(1)) // an unknown job: it may have been decided before a restart
	if took := time.Since(begin); took > 20*time.Second || d.Apply {
		t.Errorf("%s for %+v", took, d)
	}
}

func TestAControllerNeedsAStoreAndACluster(t *testing.T) {
	if _, err := New(context.Background(), Options{}); err == nil {
		t.Error("no error")
	}
}

// broken is a store whose writes fail while an error is set.
type broken struct {
	everything
	why atomic.Pointer[error]
}

func (b *broken) fail(err error) { b.why.Store(&err) }

func (b *broken) err() error {
	if why := b.why.Load(); why != nil {
		return *why
	}
	return nil
}

func (b *broken) PutJob(ctx context.Context, j *record.Job) error {
	if err := b.err(); err != nil {
		return err
	}
	return b.everything.PutJob(ctx, j)
}

func (b *broken) PutDecision(ctx context.Context, d *record.Decision) (int64, error) {
	if err := b.err(); err != nil {
		return 0, err
	}
	return b.everything.PutDecision(ctx, d)
}

func (b *broken) PutOutcome(ctx context.Context, o *record.Outcome) (store.Receipt, error) {
	if err := b.err(); err != nil {
		return 0, err
	}
	return b.everything.PutOutcome(ctx, o)
}

// untilDefault starts jobs until one is left at default clocks for a reason, and
// returns it. A busy machine may give another reason before: no answer in time.
func (r *rig) untilDefault(id slurm.JobID, why error) live.Decision {
	r.t.Helper()
	var last live.Decision
	for until := time.Now().Add(time.Minute); time.Now().Before(until); id++ {
		r.job(id, nil)
		if last = r.decide(ask(id)); !last.Apply && strings.Contains(last.Reason, why.Error()) {
			return last
		}
	}
	r.t.Fatalf("after a minute without records the decision is %+v", last)
	return live.Decision{}
}

// Whatever keeps records from being written: jobs run at default clocks at
// once, outcomes stay with whoever sends them, and when it is over nothing is
// missing that can be had.
func TestWithoutRecordsDecisionsAreDefaultClocksAndOutcomesAreRefusedForNow(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		lost bool // decisions of meanwhile
	}{
		"full disk": {store.ErrFull, false}, "locked": {store.ErrBusy, false},
		"moved": {store.ErrMoved, false}, "damaged": {store.ErrCorrupt, true},
		"closed": {store.ErrClosed, true},
	} {
		t.Run(name, func(t *testing.T) { withoutRecords(t, tc.err, tc.lost) })
	}
}

func withoutRecords(t *testing.T, why error, lost bool) {
	t.Helper()
	b := &broken{}
	var log bytes.Buffer
	r := newRig(t, func(o *Options) {
		b.everything = o.everything()
		o.Records, o.StoreWait = recordsIn(b), 10*time.Millisecond
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	for id := range slurm.JobID(4) {
		r.run(id+1, memoryBound())
	}
	r.job(50, nil)
	before := r.decide(ask(50))
	r.flush()
	b.fail(fmt.Errorf("store: %w", why))
	d := r.untilDefault(100, why)
	if d.Arm != live.ArmExcluded {
		t.Errorf("%+v", d)
	}
	if s := r.status(); !strings.Contains(s.Trouble, why.Error()) {
		t.Errorf("%+v", s)
	}
	for id := range slurm.JobID(20) {
		r.job(200+id, nil)
		r.decide(ask(200 + id))
	}
	if lost {
		r.flush()
		if n := strings.Count(log.String(), "can't be stored"); n != 1 {
			t.Errorf("the log says %d times that decisions can't be stored", n)
		}
	}
	c := r.serve(t)
	o := r.ran(before, "run-50", memoryBound())
	for range 3 {
		if status := c.post("/v1/outcome", o, nil); status != http.StatusServiceUnavailable {
			t.Errorf("an outcome that can't be stored: status %d", status)
		}
	}
	b.why.Store(nil)
	if status := c.post("/v1/outcome", o, nil); status != http.StatusOK {
		t.Errorf("afterwards: status %d", status)
	}
	r.job(90, nil)
	r.decide(ask(90))
	r.flush()
	r.job(91, nil)
	after := r.decide(ask(91))
	if r.flush(); !after.Apply || r.status().Trouble != "" {
		t.Errorf("afterwards: %+v", after)
	}
	all, err := r.store.OutcomesOfJob(context.Background(), "alpha", 50)
	if err != nil || len(all) != 1 || all[0].DecisionID == 0 {
		t.Errorf("%+v, %v", all, err)
	}
	stored, err := r.store.DecisionsOfJob(context.Background(), "alpha", int64(d.Job))
	if err != nil || len(stored) == 0 != lost || (r.status().Lost > 0) != lost {
		t.Errorf("%d decisions of meanwhile stored, %v; %+v", len(stored), err,
			r.status())
	}
}
