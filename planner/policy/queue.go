package policy

import (
	"fmt"
	"strconv"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/pick"
)

// QueueParams are the policies that choose from a queue, with their numbers.
type QueueParams struct {
	Backfill pick.Backfill
	Easy     pick.Easy
	Greedy   pick.Greedy
	Value    pick.Value
	Posted   pick.PostedPrice
	Look     pick.Lookahead
}

// DefaultQueueParams returns the numbers that were tuned on drawn queues of the PREDICT
// paper's kind (lab/docs/papers.md); Value has the paper's own.
func DefaultQueueParams() QueueParams {
	q := QueueParams{
		Greedy: pick.Greedy{Alpha: 1, Gamma: 1e4},
		Value:  pick.Value{Kappa: 1e-6},
		Posted: pick.PostedPrice{Base: 3, PerDay: 1, Price: 0.3, Steepness: 4},
		Look: pick.Lookahead{
			Weight: 0.47, Futures: 150, Seed: planner.DefaultSeed, Fairness: pick.Fairness{Spread: 0.35},
		},
	}
	q.copyToRules("spread")
	return q
}

// withQueue fills in the default numbers of queues where there are none.
func (q Params) withQueue() Params {
	if q.Queue == (QueueParams{}) {
		q.Queue = DefaultQueueParams()
	}
	return q
}

// numberKeys returns the keys of the numbers of queues, in the order in which help
// shows them.
func numberKeys() []string {
	return []string{
		"alpha", "gamma", "kappa", "base", "perday", "price", "steepness", "scale", "weight", "perkwh",
		"spread", "futures", "ageing", "patience", "seed",
	}
}

// numberFor returns where a number of queues is kept, and the most that it may be.
func (q *QueueParams) numberFor(key string) (to *float64, most float64) {
	const huge = 1e12
	switch key {
	case "alpha":
		return &q.Greedy.Alpha, huge
	case "gamma":
		return &q.Greedy.Gamma, huge
	case "kappa":
		return &q.Value.Kappa, huge
	case "base":
		return &q.Posted.Base, huge
	case "perday":
		return &q.Posted.PerDay, huge
	case "price":
		return &q.Posted.Price, huge
	case "steepness":
		return &q.Posted.Steepness, 100
	case "scale":
		return &q.Posted.Scale, huge
	case "weight":
		return &q.Look.Weight, huge
	case "perkwh":
		return &q.Look.PerKWh, huge
	case "spread":
		return &q.Look.Spread, 2
	case "patience":
		return &q.Look.Patience, huge
	case "ageing":
		return &q.Look.Ageing, huge
	}
	return nil, 0
}

// set reads a number of queues; ok is false for an unknown key.
func (q *QueueParams) set(key, value string) (ok bool, err error) {
	if to, most := q.numberFor(key); to != nil {
		err = setNumber(to, value, most)
		q.copyToRules(key)
		return true, err
	}
	const mostFutures = 10_000
	switch key {
	case "futures":
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 || n > mostFutures {
			return true, fmt.Errorf("%q, want a whole number from 0 to %d", value, mostFutures)
		}
		q.Look.Futures = n
		return true, nil
	case "seed":
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return true, fmt.Errorf("%q, want a whole number from 0", value)
		}
		q.Look.Seed = n
		return true, nil
	}
	return false, nil
}

// copyToRules gives a number that was read into Look to the other rules that have it: how
// they bound waits, and how far run times stray, is one choice for all of them.
func (q *QueueParams) copyToRules(key string) {
	limits := []*pick.Fairness{
		&q.Backfill.Fairness, &q.Greedy.Fairness, &q.Value.Fairness, &q.Posted.Fairness,
	}
	switch key {
	case "patience":
		for _, limit := range limits {
			limit.Patience = q.Look.Patience
		}
	case "spread":
		for _, limit := range limits {
			limit.Spread = q.Look.Spread
		}
		q.Easy.Spread = q.Look.Spread
	case "ageing":
		q.Value.Ageing = q.Look.Ageing
	}
}
