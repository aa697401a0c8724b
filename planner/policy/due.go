package policy

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/epplan/epplan/planner"
)

// ImplyDue gives every task without a due time one that follows from what
// users get today: when first come, first served at default clocks on the same
// cluster would end it, with its time in the system stretched by the given
// factor, at least 1. Without that, saving energy could put such tasks off for
// ever. Deadlines are not touched, and so such a task never counts as missed.
func ImplyDue(ctx context.Context, p *planner.Problem, stretch float64) error {
	if math.IsNaN(stretch) || math.IsInf(stretch, 0) {
		return fmt.Errorf("due times stretched by %v, want a finite number of 1 or more", stretch)
	}
	open := false
	for i := range p.Tasks {
		open = open || math.IsInf(p.Tasks[i].Due, 1)
	}
	if !open {
		return nil
	}
	plan, err := solveText(ctx, p, "baseline", DefaultParams())
	if err != nil {
		return err
	}
	p.MaxTurnaround = max(1, stretch)
	for i := range p.Tasks {
		t := &p.Tasks[i]
		if a := &plan.Assignments[i]; math.IsInf(t.Due, 1) && a.Node >= 0 {
			t.Due = t.Arrival + p.MaxTurnaround*(a.End-t.Arrival)
		}
	}
	return nil
}

// DefaultTolerance is the part of the cost that the default plan gives for a shorter mean turnaround.
const DefaultTolerance = 0.002

// DefaultName names the default policy: offline the one that takes the least energy, but for the default
// tolerance, and keeps every due time that can be kept; online the one that takes the least while jobs
// spend no more time in the system than under EASY at default clocks, those aside that have a
// deadline of their own.
func DefaultName(mode planner.Mode) string {
	if mode == planner.Online {
		return WithNumber(PacedPolicy, "pace", 1)
	}
	return WithNumber(SearchPolicy, "tolerance", DefaultTolerance)
}

// WithNumber returns a policy string with another number (see [Params]) in place of its own, or of none;
// one of 0 changes nothing.
func WithNumber(text, key string, number float64) string {
	if number == 0 {
		return text
	}
	_, given := optionsOf(text)
	option := "," + key + "="
	return strings.Replace(text, option+given[key], "", 1) + option + strconv.FormatFloat(number, 'g', -1, 64)
}

// PaceOf returns the pace that a policy string says; 0: it says none.
func PaceOf(text string) float64 {
	_, given := optionsOf(text)
	pace, _ := strconv.ParseFloat(given["pace"], 64)
	return pace
}
