package spool_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/epplan/epplan/internal/spool"
	"github.com/epplan/epplan/internal/testkit/spooltest"
)

// life returns what an agent does with its spool until it crashes: it adds entries
// and delivers some. It returns what Add accepted.
func life(fs *spooltest.FS, r *receiver) (accepted []string) {
	s, err := spool.Open("/spool", &spool.Options{FS: fs})
	if err != nil {
		return nil
	}
	for i := range 4 {
		id := fmt.Sprintf("run-%d", i)
		if s.Add(id, []byte("body of "+id)) == nil {
			accepted = append(accepted, id)
		}
		if i%2 == 1 {
			refused := false
			_, _ = s.Deliver(context.Background(), func(ctx context.Context, id string, body []byte) error {
				if id == "run-1" && !refused {
					refused = true
					return errors.New("timed out after the commit") // received, and yet not acknowledged
				}
				return r.send(ctx, id, body)
			})
		}
	}
	return accepted
}

func TestACrashAtAnyPointLosesNothingThatWasAccepted(t *testing.T) {
	whole := spooltest.New()
	life(whole, &receiver{})
	if whole.Operations() < 20 {
		t.Fatalf("a life has only %d operations", whole.Operations())
	}
	for n := range whole.Operations() {
		for _, after := range []bool{false, true} {
			for seed := range uint64(9) { // 0: only the process dies
				name := fmt.Sprintf("operation %d of %d, done %t, power cut %d", n,
					whole.Operations(), after, seed)
				crashAt(t, name, n, after, seed)
			}
		}
	}
}

// crashAt lives until operation n crashes, reboots, and wants each accepted
// entry to be delivered whole.
func crashAt(t *testing.T, name string, n int, after bool, seed uint64) {
	t.Helper()
	fs := spooltest.New()
	fs.CrashAt(n, after)
	var r receiver
	accepted := life(fs, &r)
	fs = fs.Reboot(seed > 0, rand.New(rand.NewPCG(seed, uint64(n))))
	s, err := spool.Open("/spool", &spool.Options{FS: fs})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	add(t, s, "run-9")
	report, err := s.Deliver(t.Context(), r.send)
	if err != nil || len(report.Aside) > 0 {
		t.Fatalf("%s: %+v, %v", name, report, err)
	}
	for _, id := range append(accepted, "run-9") {
		if r.bodies[id] != "body of "+id {
			t.Errorf("%s: %s was accepted and delivered as %q", name, id, r.bodies[id])
		}
	}
	if left := fs.Names(); len(left) > 0 || s.Len() != 0 {
		t.Errorf("%s: left behind: %q", name, left)
	}
}

func TestAFullDiskIsToldAndLosesNothing(t *testing.T) {
	fs := spooltest.New()
	s := open(t, "/spool", &spool.Options{FS: fs})
	add(t, s, "first")
	fs.Fill(10)
	if err := s.Add("second", []byte("body of second")); !errors.Is(err, spool.ErrFull) {
		t.Fatalf("got %v", err)
	}
	if len(fs.Names()) != 1 {
		t.Errorf("half an entry was left: %q", fs.Names())
	}
	fs.Fill(-1)
	add(t, s, "second")
	var r receiver
	if _, err := s.Deliver(t.Context(), r.send); err != nil || len(r.bodies) != 2 {
		t.Errorf("delivered %q, %v", r.order, err)
	}
}
