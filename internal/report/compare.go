package report

import (
	"slices"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
)

// Run is one row of a comparison: a policy with its parameters, and what came
// of it.
type Run struct {
	Params   []Param
	Summary  Summary
	Planning time.Duration
}

// Param is a parameter that distinguishes runs, such as θ or l. Its key is its
// column.
type Param struct {
	Key   string
	Value Value
}

// Comparison is a table of several runs, a row each, in the given order. Each
// parameter has a column of its own, in the order of its first use.
func Comparison(runs []Run) *Table {
	keys := paramKeys(runs)
	figures := comparedColumns()
	sharing := slices.ContainsFunc(runs, func(r Run) bool { return r.Summary.Shared > 0 })
	if sharing {
		figures = append(figures, Column{Key: "slowed", Head: "slowed"},
			Column{Key: "worst_slowdown"}, Column{Head: "worst slowdown", Note: "× alone"})
	}
	columns := make([]Column, 0, 1+len(keys)+len(figures))
	columns = append(columns, Column{Key: "policy", Head: "policy", Left: true, Max: 40})
	for _, key := range keys {
		columns = append(columns, Column{Key: key, Head: key})
	}
	columns = append(columns, figures...)
	return &Table{Columns: columns, Len: len(runs), Rows: func(yield func([]Value) bool) {
		for i := range runs {
			row := append(make([]Value, 0, len(columns)), Text(runs[i].Summary.Policy))
			for _, key := range keys {
				row = append(row, runs[i].param(key))
			}
			row = runs[i].appendCompared(row)
			if sharing {
				row = append(row, Count(runs[i].Summary.Slowed))
				row = append(row, runs[i].Summary.slowdown()...)
			}
			if !yield(row) {
				return
			}
		}
	}}
}

func paramKeys(runs []Run) []string {
	var keys []string
	for i := range runs {
		for _, p := range runs[i].Params {
			if !slices.Contains(keys, p.Key) {
				keys = append(keys, p.Key)
			}
		}
	}
	return keys
}

func (r *Run) param(key string) Value {
	for _, p := range r.Params {
		if p.Key == key {
			return p.Value
		}
	}
	return Value{}
}

// comparedColumns are those after the parameters: people get the shares of the
// energy, machines the joules.
func comparedColumns() []Column {
	return []Column{
		{Key: "status", Head: "status", Left: true},
		{Key: "jobs_total"},
		{Key: "misses", Head: "misses"},
		{Key: "infeasible"},
		{Head: "infeasible"},
		{Key: "past_due"},
		{Head: "past due"},
		{Key: "energy_j", Head: "energy", Unit: Joules, Digits: 5},
		{Key: "run_j"},
		{Key: "idle_j"},
		{Key: "turn_on_j"},
		{Key: "host_j"},
		{Key: "sleep_j"},
		{Key: "baseline_energy_j"},
		{Key: "saving", Head: "saving", Unit: Fraction},
		{Key: "bound_j"},
		{Key: "gap", Head: "gap", Unit: Fraction, Digits: 2},
		{Head: "run", Unit: Fraction, Digits: 2},
		{Head: "idle", Unit: Fraction, Digits: 2},
		{Head: "turn-on", Unit: Fraction, Digits: 2},
		{Head: "host", Unit: Fraction, Digits: 2},
		{Head: "sleep", Unit: Fraction, Digits: 2},
		{Key: "nodes_used", Head: "nodes"},
		{Key: "gpus_used"},
		{Key: "end_s", Head: "end", Unit: Seconds},
		{Key: "planning_s", Head: "planning", Unit: Seconds, Digits: 2},
	}
}

func (r *Run) appendCompared(row []Value) []Value {
	s := &r.Summary
	impossible, late := Value{}, Value{} // people see the columns only where they matter
	if s.Infeasible > 0 {
		impossible = Count(s.Infeasible)
	}
	if s.PastDue > 0 {
		late = Count(s.PastDue)
	}
	share := func(part dvfsmodel.Joule) Value { return nonZero(ratio(part, s.Energy)) }
	return append(row,
		Text(s.Status.String()), Count(s.JobsTotal), Count(s.Misses), Count(s.Infeasible), impossible, Count(s.PastDue), late,
		Number(s.Energy), Number(s.Run), Number(s.Idle), Number(s.TurnOn), Number(s.Host), Number(s.Sleep),
		nonZero(s.Baseline), Number(s.Saving()), nonZero(s.Bound), Number(s.Gap()),
		share(s.Run), share(s.Idle), share(s.TurnOn), share(s.Host), share(s.Sleep),
		Count(s.NodesUsed), Count(s.GPUsUsed), Number(s.End), Number(r.Planning.Seconds()),
	)
}
