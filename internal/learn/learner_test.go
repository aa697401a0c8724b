package learn

import (
	"context"
	"strconv"
	"testing"

	"github.com/epplan/epplan/internal/store/record"
)

// Who waits for refits must not wait for ever for those that nobody makes any more.
func TestRefitsThatAreDueAtTheEndAreDoneWith(t *testing.T) {
	kept := &remembered{}
	o := optionsOf(kept)
	due, done := 0, 0
	o.Pending = func() func() { due++; return func() { done++ } }
	l := New(o)
	for i := range refitQueue + 2 {
		run := record.Outcome{Cluster: "alpha", Workload: strconv.Itoa(i), GPUModel: "V100"}
		l.RunEnded(t.Context(), &run)
		l.RunEnded(t.Context(), &run)
		if l.RunEnded(t.Context(), &run); i == 0 && due != 1 {
			t.Errorf("%d refits for two runs of a workload, want 1", due)
		}
	}
	if waiting := due - done; waiting != refitQueue {
		t.Errorf("%d wait, want %d", waiting, refitQueue)
	}
	ended, stop := context.WithCancel(t.Context())
	stop()
	l.Run(ended)
	if due != done {
		t.Errorf("%d were due, %d are done with", due, done)
	}
}
