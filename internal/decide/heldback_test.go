package decide

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// Where one bound alone keeps other clocks from being chosen, the reason names it; and only then. Default
// clocks are said to be the best ones where no bound does.
func TestTheReasonForDefaultClocksNamesTheBoundThatForbidsOthers(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 3))
	from := newPool(t, rng, 8)
	bound, best := 0, 0
	for range 400 {
		a := from.draw(rng)
		if rng.IntN(2) == 0 {
			a.stretch = 1 + 0.1*rng.Float64()
		}
		if rng.IntN(3) == 0 {
			a.minCore, a.minMem = 0.95, 0.95
		}
		said := a.reason(t)
		if !strings.HasPrefix(said, "default clocks") || strings.Contains(said, "no others are sure") ||
			strings.Contains(said, "min_gain") {
			continue
		}
		forbidden := a.namesWhatBinds(t, said)
		if strings.Contains(said, "are the best ones") == forbidden {
			t.Errorf("%v: %q, though a bound forbids others: %v", a, said, forbidden)
		}
		if forbidden {
			bound++
		} else {
			best++
		}
	}
	if t.Logf("%d bound, %d the best", bound, best); bound < 20 || best < 5 {
		t.Errorf("%d bound, %d the best: too few to tell", bound, best)
	}
}

// namesWhatBinds has an error for each bound that a reason doesn't name and without which
// other clocks are chosen, and for each that it names wrongly; and tells whether there is one.
func (a *alike) namesWhatBinds(t *testing.T, said string) (forbidden bool) {
	t.Helper()
	for key, relax := range map[string]func(*alike){
		"max_slowdown": func(a *alike) { a.stretch = 1e6 },
		"limit":        func(a *alike) { a.limit = live.Unlimited() },
		"deadline":     func(a *alike) { a.deadline = 0 },
		"min_core":     func(a *alike) { a.minCore, a.maxCore, a.minMem, a.maxMem = 0.001, 9, 0.001, 9 },
	} {
		if (key == "limit") && a.deadline > 0 && a.limitIsDeadline() ||
			key == "deadline" && (a.deadline == 0 || !a.limitIsDeadline()) {
			continue
		}
		b := *a
		if relax(&b); key == "limit" || key == "deadline" {
			b.limit, b.deadline = live.Unlimited(), 0
		}
		changes := !strings.HasPrefix(b.reason(t), "default clocks")
		if forbidden = forbidden || changes; strings.Contains(said, key) != changes {
			t.Errorf("%v: without %s it isn't %q: %v", a, key, said, changes)
		}
	}
	return forbidden
}

// limitIsDeadline reports whether the deadline comes before the time limit is over.
func (a *alike) limitIsDeadline() bool {
	limit, limited := a.limit.Duration()
	return !limited || a.deadline-time.Duration(a.deadlineMargin*float64(time.Second)) < limit
}

// reason is that of the decision, whatever the settings' ranges are.
func (a *alike) reason(t *testing.T) string {
	t.Helper()
	inRange := *a
	inRange.stretch, inRange.minCore, inRange.maxCore, inRange.minMem, inRange.maxMem = 1, 1, 1, 1, 1
	ch := inRange.chooser(t, inRange.configuration())
	l := &ch.settings.Live
	l.MaxSlowdown, l.MinCore, l.MaxCore, l.MinMem, l.MaxMem = a.stretch, a.minCore, a.maxCore, a.minMem, a.maxMem
	ch.table = newTable(ch.settings, ch.request, dvfsmodel.Setting{})
	ch.choose(&slurm.Wishes{Deadline: ch.decision.Wish.Deadline})
	return ch.decision.Reason
}
