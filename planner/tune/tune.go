// Package tune decides clocks: none at all, each task's own optimum, the optimum
// with θ-readjustment of the EDL paper, or one that doesn't take much longer.
package tune

import (
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// None leaves every task at its default clocks.
func None(p *planner.Problem) planner.Tuner { return constant{p: p} }

// defaultQuote returns the default clocks, for a reason that is in the task itself
// where there is one.
func defaultQuote(p *planner.Problem, task, option int) planner.Quote {
	t := &p.Tasks[task]
	response := t.Options[option].Response
	q := planner.Quote{Point: response.Default(), Clocks: planner.ClocksDefault}
	q.Want = q.Point.Time
	if !dvfsmodel.HasModel(response) {
		q.Clocks = planner.ClocksNoModel
	}
	if t.Share < 1 {
		q.Clocks = planner.ClocksShared
	}
	return q
}
