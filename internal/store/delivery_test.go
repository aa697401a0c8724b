package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/epplan/epplan/internal/spool"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/testkit/spooltest"
)

// line is the way from a spool to a store: it breaks at random, before the
// outcome arrives or after it was committed.
type line struct {
	store *store.Store
	lot   *rand.Rand
	sent  int
}

func (l *line) send(ctx context.Context, _ string, body []byte) error {
	broken := errors.New("the line is broken")
	if l.lot.IntN(6) == 0 {
		return broken
	}
	var o record.Outcome
	if err := json.Unmarshal(body, &o); err != nil {
		return fmt.Errorf("%w: %w", spool.ErrRejected, err)
	}
	l.sent++
	if _, err := l.store.PutOutcome(ctx, &o); err != nil {
		return err
	}
	if l.lot.IntN(4) == 0 {
		return broken
	}
	return nil
}

// agentLife adds outcomes that weren't accepted yet and delivers, until the
// file system crashes or all is done.
func agentLife(ctx context.Context, fs *spooltest.FS, l *line, accepted []bool) error {
	s, err := spool.Open("/spool", &spool.Options{FS: fs})
	if err != nil {
		return err
	}
	for i := range accepted {
		if accepted[i] {
			continue
		}
		body, err := json.Marshal(outcome(i))
		if err != nil {
			return err
		}
		if err := s.Add(outcome(i).RunID, body); err != nil {
			return err
		}
		accepted[i] = true
		if l.lot.IntN(3) == 0 {
			if _, err := s.Deliver(ctx, l.send); errors.Is(err, spooltest.ErrCrashed) {
				return err
			}
		}
	}
	for s.Len() > 0 { // the line isn't always broken
		if _, err := s.Deliver(ctx, l.send); errors.Is(err, spooltest.ErrCrashed) {
			return err
		}
	}
	return nil
}

func TestEveryOutcomeArrivesOnceWhateverCrashesAndRepeats(t *testing.T) {
	dir := tempDir(t)
	crashes, repeats := 0, 0
	for seed := range uint64(30) {
		const runs = 25
		l := &line{
			store: open(t, filepath.Join(dir, fmt.Sprint(seed, ".db")), nil),
			lot:   rand.New(rand.NewPCG(seed, 1)),
		}
		fs := spooltest.New()
		accepted := make([]bool, runs)
		for {
			if l.lot.IntN(8) > 0 {
				fs.CrashAt(l.lot.IntN(60), l.lot.IntN(2) == 0)
			}
			err := agentLife(t.Context(), fs, l, accepted)
			if err == nil {
				break
			}
			if !errors.Is(err, spooltest.ErrCrashed) {
				t.Fatalf("seed %d: %v", seed, err)
			}
			crashes++
			fs = fs.Reboot(l.lot.IntN(2) == 0, l.lot)
		}
		if n := len(exported(t, l.store, "outcomes")); n != runs {
			t.Errorf("seed %d: %d outcomes of %d runs", seed, n, runs)
		}
		if n := len(exported(t, l.store, "outcome_conflicts")); n != 0 {
			t.Errorf("seed %d: %d conflicts", seed, n)
		}
		repeats += l.sent - runs
		if err := l.store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if crashes < 50 || repeats < 50 {
		t.Errorf("only %d crashes and %d repeats were tried", crashes, repeats)
	}
	t.Logf("%d crashes, %d repeats", crashes, repeats)
}
