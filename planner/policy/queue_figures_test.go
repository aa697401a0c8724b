package policy_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/taskset"
	"github.com/epplan/epplan/internal/trace"
)

// drawnRow is what a policy and Simple come to on a drawn queue.
type drawnRow struct{ ours, simple outcome }

// rest is what a policy takes more than Simple over queues but the one left out, -1:
// over all; in per cent of Simple's energy and waiting.
func rest(rows []drawnRow, without int) (energy, wait float64) {
	var ours, simple outcome
	for i := range rows {
		if i != without {
			ours.kWh, ours.wait = ours.kWh+rows[i].ours.kWh, ours.wait+rows[i].ours.wait
			simple.kWh, simple.wait = simple.kWh+rows[i].simple.kWh, simple.wait+rows[i].simple.wait
		}
	}
	return 100 * (ours.kWh/simple.kWh - 1), 100 * (ours.wait/simple.wait - 1)
}

// jackknife is a figure of all of so many queues with half its 95 % interval, by what
// it is without each of them.
func jackknife(count int, figure func(without int) float64) (all, half float64) {
	mean, squares := 0.0, 0.0
	for i := range count {
		x := figure(i) / float64(count)
		mean += x
		squares += x * x * float64(count)
	}
	return figure(-1), 1.96 * math.Sqrt(max(0, squares-mean*mean)*float64(count-1))
}

// BenchmarkQueueFigures prints what policies for queues on two GPU types come to on
// drawn queues, each against Simple and against the first policy named:
//
//	go test ./planner/policy -run xxx -bench QueueFigures -queues 'lookahead;value' -seeds 6000:6119
func BenchmarkQueueFigures(b *testing.B) {
	if *queueFigures == "" {
		b.Skip("-queues names no policies")
	}
	var first, last uint64
	if _, err := fmt.Sscanf(*onlineSeeds, "%d:%d", &first, &last); err != nil {
		b.Fatal(err)
	}
	for _, model := range []trace.EnergyModel{trace.Independent, trace.Coupled} {
		var base []drawnRow
		for text := range strings.SplitSeq(*queueFigures, ";") {
			rows := make([]drawnRow, 0, last-first+1)
			beyond := 0
			for seed := first; seed <= last; seed++ {
				jobs, pool := taskset.Queue(rand.New(rand.NewPCG(seed, 1)), model) //nolint:gosec // repeatable on purpose
				q := newQueueCase(b, jobs, &pool, model)
				row := drawnRow{q.run(b, text, false), q.run(b, "simple", false)}
				if row.ours.longest > 3*row.simple.longest {
					beyond++
				}
				rows = append(rows, row)
			}
			if base == nil {
				base = rows
			}
			n := len(rows)
			e, eHalf := jackknife(n, func(i int) float64 { energy, _ := rest(rows, i); return energy })
			w, wHalf := jackknife(n, func(i int) float64 { _, wait := rest(rows, i); return wait })
			worth := func(i int, weight float64) float64 {
				energy, wait := rest(rows, i)
				baseEnergy, baseWait := rest(base, i)
				return weight*(energy-baseEnergy) + wait - baseWait
			}
			de, deHalf := jackknife(n, func(i int) float64 { return worth(i, 1) - worth(i, 0) })
			dw, dwHalf := jackknife(n, func(i int) float64 { return worth(i, 0) })
			ds, dsHalf := jackknife(n, func(i int) float64 { return worth(i, 2) })
			b.Logf("%v, %d queues, %s: energy %+.2f±%.2f waiting %+.2f±%.2f, beyond 3 times %d; to the first: energy %+.2f±%.2f waiting %+.2f±%.2f, twice the energy and waiting %+.2f±%.2f",
				model, n, text, e, eHalf, w, wHalf, beyond, de, deHalf, dw, dwHalf, ds, dsHalf)
		}
	}
}
