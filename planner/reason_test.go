package planner_test

import (
	"math"
	"strings"
	"testing"
)

// A reason names what binds a job: only a job that has a deadline is bound by one.
func TestAReasonNamesTheBoundThatBinds(t *testing.T) {
	inf := math.Inf(1)
	for name, c := range map[string]struct {
		deadline, due, limit, margin float64
		busy                         bool // another job has the GPU for 30 s
		want                         string
	}{
		"a deadline": {
			97, 97, inf, 0, false, "deadline-bound: 97 s allowed, the optimum takes ",
		},
		"a deadline and its margin": {
			100, 97, inf, 0, false, "deadline-bound: 97 s allowed, 3 s of margin kept; the optimum takes ",
		},
		"what stretch implies": {
			inf, 97, inf, 0, false, "bound by its due time: 97 s allowed, the optimum takes ",
		},
		"a limit": {
			inf, 500, 97, 0, false, "limit-bound: 97 s allowed, the optimum takes ",
		},
		"a limit and its margin": {
			200, 200, 97, 0.1, false,
			"limit-bound: 97 s allowed, its limit of 106.7 s less the margin of 10 %; the optimum takes ",
		},
		"too late for a deadline": {
			110, 110, inf, 0, true, "fastest clocks: the deadline can't be met here",
		},
		"too late for its margin": {
			120, 110, inf, 0, true, "fastest clocks: the deadline less its margin of 10 s can't be met here",
		},
		"too late for what stretch": {
			inf, 110, inf, 0, true, "fastest clocks: the due time can't be met here",
		},
	} {
		k := paperClass(1)
		k.Count = 1
		p := online(k)
		if c.busy {
			p.Tasks = append(p.Tasks, at(job("first", fixed(30)), 0, inf))
		}
		j := at(job("second", continuous(100)), 0, c.deadline)
		j.Due, j.Limit, j.LimitMargin = c.due, c.limit, c.margin
		if c.busy {
			j.Arrival = 1
		}
		p.Tasks = append(p.Tasks, j)
		plan := solve(t, p, "edl")
		if got := plan.Assignments[len(p.Tasks)-1].Reason.String(); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestAJobThatCantBePlannedEndsAtBestAfterItsNodeIsOn(t *testing.T) {
	k := paperClass(1)
	k.TurnOnDelay = 30
	tight := online(k, at(job("tight", fixed(3600)), 0, 3000))
	loose := online(k, at(job("tight", fixed(3600)), 0, 1e5))
	plan, end := solve(t, tight, "edl"), solve(t, loose, "edl").Assignments[0].End
	if len(plan.Unplaced) != 1 || plan.Unplaced[0].Earliest != end {
		t.Errorf("%+v, a later deadline gives %v s", plan.Unplaced, end)
	}
}
