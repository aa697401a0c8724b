package agent_test

import (
	"testing"
	"time"
	"unsafe"

	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/live"
)

// clockAhead returns a time as the machine's clock would have told it if it had been d ahead, in whole
// seconds. The clock that nobody sets tells the same.
func clockAhead(at time.Time, d time.Duration) time.Time {
	const nanosecondBits = 30
	wall := (*uint64)(unsafe.Pointer(&at)) // nothing else sets one of the two apart
	*wall += uint64(d/time.Second) << nanosecondBits
	return at
}

// begunAhead has a run that began ten minutes ago, when the machine's clock was d ahead.
func begunAhead(t *testing.T, d time.Duration) (*host, *agent.Agent) {
	t.Helper()
	h := newHost(t, twoGPUs)
	a := h.started()
	r := h.run("r1", 1, slow, 0)
	r.Started = clockAhead(time.Now().Add(-10*time.Minute), d)
	if _, err := a.Apply(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return h, a
}

var clocksSet = map[string]time.Duration{
	"back": 3 * time.Hour, "forward": -3 * time.Hour, "by ten years": -10 * 365 * 24 * time.Hour,
}

func TestARunDuringWhichTheClockIsSetLastsAsLongAsItDid(t *testing.T) {
	for name, d := range clocksSet {
		t.Run(name, func(t *testing.T) {
			h, a := begunAhead(t, d)
			was, err := a.End(t.Context(), 1, "n1")
			if err != nil {
				t.Fatal(err)
			}
			h.wantFree()
			// Slurm's clock is another machine's: what it says of the end can't be placed.
			if _, err := a.Runs().EndedAt("r1", was.Outcome.Ended.Add(-5*time.Minute).Round(0)); err != nil {
				t.Fatal(err)
			}
			for when, a := range map[string]*agent.Agent{"now": a, "after a restart": h.started()} {
				closed := a.Runs().Ended()
				if len(closed) != 1 {
					t.Fatalf("%s: %d runs", when, len(closed))
				}
				got := closed[0].Outcome
				lasted := got.Ended.Round(0).Sub(got.Started.Round(0)).Round(time.Minute)
				if lasted != 10*time.Minute || !got.Ended.Equal(was.Outcome.Ended) ||
					time.Duration(got.TimeS.Or(0))*time.Second != lasted {
					t.Errorf("%s: from %s to %s, %v s; want 10 minutes up to %s", when, got.Started, got.Ended,
						got.TimeS.Or(-1), was.Outcome.Ended)
				}
			}
		})
	}
}

func TestTheEndOfARunThatIsGoneIsNotKnownIfTheClockWasSet(t *testing.T) {
	for name, d := range clocksSet {
		t.Run(name, func(t *testing.T) {
			h, a := begunAhead(t, d)
			swept, err := a.Sweep(t.Context(), goneAt(time.Now().Add(-time.Minute).Round(0)), alive)
			if err != nil || len(swept.Closed) != 1 {
				t.Fatalf("closed %+v, %v", swept.Closed, err)
			}
			h.wantFree()
			got := swept.Closed[0].Outcome
			lasted := got.Ended.Round(0).Sub(got.Started.Round(0))
			if got.TimeS != (live.Number{}) || lasted < 0 || lasted > 11*time.Minute || !got.Restarted.IsZero() {
				t.Errorf("it lasted %s (%s s, %s s)", lasted, got.TimeS, got.Restarted.TimeS)
			}
		})
	}
}
