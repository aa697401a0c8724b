package daemon

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm/hooks"
)

// firstJob returns a Prolog of the first job after a boot.
func firstJob() *hooks.Event {
	return &hooks.Event{
		Version: hooks.ProtocolVersion, Kind: hooks.Prolog, Job: 7, Node: "n1", GPUs: []int{0}, GPUsKnown: true,
		Deadline: time.Now().Add(maxHookTime).UnixMilli(),
	}
}

// lowered returns a controller that chooses clocks.
func lowered() *ledger {
	return &ledger{decided: live.Decision{
		Mode: live.Enforce, Apply: true, Setting: dvfsmodel.Setting{Core: 945}, Reason: "chosen",
	}}
}

// slowOpen is what eight GPUs without persistence mode take.
const slowOpen = "open:slow=30sx1"

func TestAJobThatComesWhileGPUsAreOpenedGetsItsClocksOnceTheyAre(t *testing.T) {
	l := lowered()
	nodedWith(t, l, slowOpen, func(t *testing.T, d *AgentServer) {
		t.Helper()
		began := time.Now() // the start waited for five seconds
		answer := d.prolog(t.Context(), firstJob())
		if took := time.Since(began); answer.Applied || took > time.Second ||
			!strings.Contains(string(answer.Reason), "being opened") {
			t.Errorf("%+v after %s", answer, took)
		}
		sleep(30 * time.Second)
		runs := d.options.Agent.State().Runs
		if len(runs) != 1 || runs[0].Wants.Core != 945 || runs[0].HandsOff != "" ||
			!runs[0].Started.Equal(began) {
			t.Fatalf("%+v", runs)
		}
		event := firstJob()
		event.Kind = hooks.Epilog
		d.epilog(t.Context(), event)
		synctest.Wait()
		if len(l.kept) != 1 {
			t.Fatalf("%d outcomes", len(l.kept))
		}
		// Of a part that nobody saw nothing is learnt.
		if o := l.kept[0]; o.TimeS != (live.Number{}) || o.GPUEnergyJ != (live.Number{}) ||
			o.Setting.Core != 945 || !strings.Contains(o.LockedWords(), "weren't opened when it began") {
			t.Errorf("%+v", o)
		}
	})
}

func TestAPrologWaitsForGPUsThatAreOpenedSoon(t *testing.T) {
	nodedWith(t, lowered(), "open:slow=5500msx1", func(t *testing.T, d *AgentServer) {
		t.Helper()
		if answer := d.prolog(t.Context(), firstJob()); !answer.Applied {
			t.Errorf("%+v", answer)
		}
		if runs := d.options.Agent.State().Runs; len(runs) != 1 || len(runs[0].Notes) > 0 {
			t.Errorf("%+v", runs)
		}
	})
}

func TestAJobThatEndsBeforeGPUsAreOpenedIsNotBegunAfterwards(t *testing.T) {
	nodedWith(t, lowered(), slowOpen, func(t *testing.T, d *AgentServer) {
		t.Helper()
		d.prolog(t.Context(), firstJob())
		sleep(5 * time.Second)
		event := firstJob()
		event.Kind = hooks.Epilog
		d.epilog(t.Context(), event)
		sleep(time.Minute)
		if state := d.options.Agent.State(); len(state.Runs) != 0 || len(state.GPUs) != 1 ||
			state.GPUs[0].Entry != nil {
			t.Errorf("%+v", state)
		}
	})
}

func TestAnEPDThatStopsDoesNotWaitForGPUs(t *testing.T) {
	nodedWith(t, lowered(), "open:slow=1hx1", func(t *testing.T, d *AgentServer) {
		t.Helper()
		d.prolog(t.Context(), firstJob())
		began := time.Now()
		d.stopHooks(t.Context())
		if took := time.Since(began); took > 0 {
			t.Errorf("stopping took %s", took)
		}
		sleep(2 * time.Hour) // the driver comes back
		if runs := d.options.Agent.State().Runs; len(runs) != 0 {
			t.Errorf("%+v", runs)
		}
	})
}

// An agent that stood still from before a Prolog until after its Epilog reads both at once, in any order.
func TestAnEpilogThatIsReadBeforeItsPrologEndsTheRunOnce(t *testing.T) {
	for name, play := range map[string]func(*testing.T, *AgentServer, *hooks.Event, *hooks.Event){
		"before": func(t *testing.T, d *AgentServer, prolog, epilog *hooks.Event) {
			t.Helper()
			d.epilog(t.Context(), epilog)
			d.prolog(t.Context(), prolog)
		},
		"during": func(t *testing.T, d *AgentServer, prolog, epilog *hooks.Event) {
			t.Helper()
			go d.prolog(t.Context(), prolog)
			sleep(100 * time.Millisecond)
			d.epilog(t.Context(), epilog)
		},
	} {
		l := lowered()
		l.takes = 500 * time.Millisecond
		noded(t, l, func(t *testing.T, d *AgentServer) {
			t.Helper()
			prolog, epilog := firstJob(), firstJob()
			epilog.Kind, epilog.Deadline = hooks.Epilog, prolog.Deadline+3000
			play(t, d, prolog, epilog)
			sleep(time.Minute)
			if runs := d.options.Agent.State().Runs; len(runs) != 0 || len(l.kept) != 1 {
				t.Errorf("%s: runs %+v, outcomes %+v", name, runs, l.kept)
			}
			// When it was put back into the queue it is another run.
			again := firstJob()
			again.Deadline = epilog.Deadline + 20_000
			d.prolog(t.Context(), again)
			if runs := d.options.Agent.State().Runs; len(runs) != 1 {
				t.Errorf("%s: the next one: runs %+v", name, runs)
			}
		})
	}
}

// Else it would be at default clocks and without a record until the clock has caught up.
func TestAJobThatComesBackAfterTheClockWasSetBackIsARun(t *testing.T) {
	noded(t, lowered(), func(t *testing.T, d *AgentServer) {
		t.Helper()
		epilog := firstJob()
		epilog.Kind = hooks.Epilog
		d.epilog(t.Context(), epilog) // its Prolog came while there was no agent
		sleep(remembered + time.Minute)
		again := firstJob()
		again.Deadline = epilog.Deadline - (3 * time.Hour).Milliseconds()
		d.prolog(t.Context(), again)
		if runs := d.options.Agent.State().Runs; len(runs) != 1 {
			t.Errorf("runs %+v", runs)
		}
	})
}

// Eight GPUs behind a driver that hangs: a Prolog is over in its time, and what it left hanging ends with the
// driver's calls.
func TestADriverThatHangsOnAllGPUsCostsAPrologOneCallsTime(t *testing.T) {
	nodedOn(t, "sim:8,busy", lowered(), "sharing:slow=1mx8",
		func(t *testing.T, d *AgentServer) {
			t.Helper()
			job := firstJob()
			job.GPUs = []int{0, 1, 2, 3, 4, 5, 6, 7}
			began := time.Now()
			answer := d.prolog(t.Context(), job)
			if took := time.Since(began); answer.Applied || took > maxHookTime {
				t.Errorf("%+v after %s", answer, took)
			}
			sleep(2 * time.Minute)
			for _, g := range d.options.Agent.State().GPUs {
				if g.Stuck || g.Entry != nil {
					t.Errorf("%+v", g)
				}
			}
		})
}
