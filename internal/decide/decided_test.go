package decide

import (
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// on returns a request for a job on a node.
func on(job slurm.JobID, node string) *epdapi.DecideRequest {
	return &epdapi.DecideRequest{
		Job: job, Node: node, RunID: "r-" + node, GPUModel: "V100", GPUs: 1,
		Clocks: []epdapi.ClockGroup{{Mem: 877, Core: []dvfsmodel.MHz{1380, 802}}},
	}
}

// Slurm gives a number to another job later. Where it isn't known which job asks, the nodes of one ask within
// a minute.
func TestOnlyNodesOfTheSameRunFollowADecision(t *testing.T) {
	for _, c := range []struct {
		lead, other int64 // when their jobs were submitted, 0: not known
		after       time.Duration
		follows     bool
	}{
		{5, 5, 0, true},
		{5, 5, time.Hour, true},
		{5, 6, 0, false},
		{5, 6, time.Hour, false},
		{0, 0, 0, true},
		{0, 0, 59 * time.Second, true},
		{0, 0, 61 * time.Second, false},
		{5, 0, time.Second, true},
		{5, 0, 2 * time.Minute, false},
		{0, 5, time.Second, true},
		{0, 5, 24 * time.Hour, false},
	} {
		for node, another := range map[string]bool{"n1": false, "n2": true} {
			lead := &Decided{Decision: live.Decision{Node: "n1"}, At: start, submitted: c.lead}
			other := &Decided{Decision: live.Decision{Node: node}, At: start.Add(c.after), submitted: c.other}
			if got := lead.canLead(other); got != (c.follows && another) {
				t.Errorf("%s after %s, submitted at %d and %d: it follows: %v", node, c.after, c.lead, c.other, got)
			}
		}
	}
}

// The decision that other nodes follow is let go with those that follow it.
func TestALeadIsForgottenWithItsRun(t *testing.T) {
	dr, known := newDecider(t, 7, func() time.Time { return start })
	known.Observe([]slurm.Job{{
		ID: 1, Submit: start, NodeCount: 2, TimeLimit: live.LimitOf(time.Hour),
		State: slurm.JobState{Base: slurm.Running},
	}})
	for _, node := range []string{"n1", "n2"} {
		if d, made, again := dr.Decide(t.Context(), on(1, node)); !made || again || d.Node != node {
			t.Fatalf("%+v, made %v, again %v", d, made, again)
		}
	}
	if dr.Len() != 2 || len(dr.leads) != 1 {
		t.Fatalf("%d decisions and %d leads are kept", dr.Len(), len(dr.leads))
	}
	dr.Release(1, "n1", "another")
	if dr.Len() != 2 {
		t.Error("the end of another run has a decision forgotten")
	}
	for _, node := range []string{"n1", "n2"} {
		dr.Release(1, node, "r-"+node)
	}
	if dr.Len() != 0 || len(dr.leads) != 0 {
		t.Errorf("%d decisions and %d leads are kept", dr.Len(), len(dr.leads))
	}
}

func TestLeadsAreForgottenWithDecisionsWhoseOutcomeNeverComes(t *testing.T) {
	now := start
	dr, known := newDecider(t, 7, func() time.Time { return now })
	dr.Decide(t.Context(), on(1, "n1"))
	dr.Decide(t.Context(), on(2, "n1"))
	known.Observe([]slurm.Job{{ID: 2, State: slurm.JobState{Base: slurm.Running}}})
	now = now.Add(25 * time.Hour)
	dr.Decide(t.Context(), on(3, "n1"))
	dr.ForgetStale()
	if dr.Kept(1, "n1") != nil || dr.Len() != 2 || len(dr.leads) != 2 {
		t.Errorf("%d decisions are kept, %d lead", dr.Len(), len(dr.leads))
	}
}
