//go:build cgo

package control

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/store/record"
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
	const bound = 100 * time.Millisecond
	id := slurm.JobID(100)
	for until := time.Now().Add(5 * time.Second); ; id++ {
		r.job(id, nil)
		begin := time.Now()
		d := r.decide(ask(id))
		if took := time.Since(begin); took > bound {
			t.Errorf("job %d: %s, want at most %s", id, took, bound)
		}
		if !d.Apply {
			if !strings.Contains(d.Reason, "records can't be written") || d.Core != 0 || d.Arm != record.Excluded {
				t.Errorf("%+v", d)
			}
			break
		}
		if time.Now().After(until) {
			t.Fatal("clocks are still set after 5 s without records")
		}
	}
	if s := r.Status(context.Background()); s.Trouble == "" || s.Unwritten == 0 {
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
type hung struct{ Records }

func (hung) DecisionsOfJob(context.Context, string, int64) ([]record.Decision, error) { select {} }

func TestAStoreThatHangsDoesNotHoldAPrologUp(t *testing.T) {
	r := newRig(t, func(o *Options) {
		o.Store, o.StoreWait = hung{o.Store}, 20*time.Millisecond
	})
	begin := time.Now()
	d := r.decide(ask(1)) // an unknown job: it may have been decided before a restart
	if took := time.Since(begin); took > time.Second || d.Apply {
		t.Errorf("%s for %+v", took, d)
	}
}

func TestAControllerNeedsAStoreAndACluster(t *testing.T) {
	if _, err := New(context.Background(), Options{}); err == nil {
		t.Error("no error")
	}
}
