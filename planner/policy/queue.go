package policy

import (
	"fmt"
	"strconv"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/pick"
)

// Queue are the numbers of the policies that choose from a queue.
type Queue struct {
	Greedy pick.Greedy
	Value  pick.Value
	Posted pick.PostedPrice
	Look   pick.Lookahead

	// Patience is pick.Fairness's of simple-backfill, greedy, value and
	// posted-price; lookahead has its own.
	Patience float64
}

// DefaultQueue are the numbers that were tuned on drawn queues of the PREDICT
// paper's kind (docs/papers.md); Value has the paper's own.
func DefaultQueue() Queue {
	return Queue{
		Greedy: pick.Greedy{Alpha: 1, Gamma: 1e4},
		Value:  pick.Value{Kappa: 1e-6},
		Posted: pick.PostedPrice{Base: 3, PerDay: 1, Price: 0.3, Steepness: 4},
		Look:   pick.Lookahead{Weight: 0.47, Spread: 0.35, Futures: 150, Patience: 2, Seed: planner.DefaultSeed},
	}
}

// CoupledQueue are the numbers where a job's energy follows from its run time,
// so that a kWh is worth less waiting.
func CoupledQueue() Queue {
	q := DefaultQueue()
	q.Greedy.Gamma = 1e8
	q.Posted = pick.PostedPrice{Base: 3, PerDay: 0.2, Price: 0, Steepness: 1}
	return q
}

// withQueue fills in the default numbers of queues where there are none.
func (q Params) withQueue() Params {
	if q.Queue == (Queue{}) {
		q.Queue = DefaultQueue()
	}
	return q
}

// numberKeys are the keys of the numbers of queues, in the order in which help
// shows them.
func numberKeys() []string {
	return []string{"alpha", "gamma", "kappa", "base", "perday", "price", "steepness", "scale", "weight", "perkwh", "spread", "futures", "ageing", "patience", "seed"}
}

// number is where a number of queues is kept, and the most that it may be.
func (q *Queue) number(key string) (to *float64, most float64) {
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
		return &q.Patience, huge
	case "ageing":
		return &q.Value.Ageing, huge
	}
	return nil, 0
}

// set reads a number of queues; ok is false for an unknown key.
func (q *Queue) set(key, value string) (ok bool, err error) {
	if to, most := q.number(key); to != nil {
		err = setNumber(to, value, most)
		switch key { // lookahead's defaults differ from the others'
		case "patience":
			q.Look.Patience = q.Patience
		case "ageing":
			q.Look.Ageing = q.Value.Ageing
		}
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

type pickStage = func(*planner.View, planner.Placer) planner.Picker

// fairness is the limit of the rules that have none by default.
func (q Queue) fairness() pick.Fairness {
	return pick.Fairness{Patience: q.Patience, Spread: q.Look.Spread}
}

func (q Queue) backfill() pickStage { return pick.Backfill{Fairness: q.fairness()}.New }

func (q Queue) easy() pickStage { return pick.Easy{Spread: q.Look.Spread}.New }

func (q Queue) greedy() pickStage {
	rule := q.Greedy
	rule.Fairness = q.fairness()
	return rule.New
}

func (q Queue) value() pickStage {
	rule := q.Value
	rule.Fairness = q.fairness()
	return rule.New
}

func (q Queue) posted() pickStage {
	rule := q.Posted
	rule.Fairness = q.fairness()
	return rule.New
}

func (q Queue) lookahead() pickStage { return q.Look.New }
