package taskset_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/epplan/epplan/lab/taskset"
	"github.com/epplan/epplan/lab/trace"
)

var (
	queueFigures = flag.String("queues", "", "policies to print figures of, separated by semicolons")
	queueSeeds   = flag.String("seeds", "1:40", "first and last seed of the queues that they are for")
)

// drawnRow is what a policy and Simple come to on a drawn queue.
type drawnRow struct{ ours, simple outcome }

// rest returns what a policy takes more than Simple over queues but the one left out, -1:
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

// jackknife returns a figure of all of so many queues with half its 95 % interval, by what
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
//	go test ./lab/taskset -run xxx -bench QueueFigures -queues 'lookahead;value' -seeds 6000:6119
func BenchmarkQueueFigures(b *testing.B) {
	if *queueFigures == "" {
		b.Skip("-queues names no policies")
	}
	var first, last uint64
	if _, err := fmt.Sscanf(*queueSeeds, "%d:%d", &first, &last); err != nil {
		b.Fatal(err)
	}
	for _, model := range []trace.EnergyModel{trace.Independent, trace.Coupled} {
		b.Run(fmt.Sprint(model), func(b *testing.B) {
			var base []drawnRow
			for text := range strings.SplitSeq(*queueFigures, ";") {
				rows := make([]drawnRow, 0, last-first+1)
				for seed := first; seed <= last; seed++ {
					jobs, pool := taskset.Queue(rand.New(rand.NewPCG(seed, 1)), model)
					q := newQueueCase(b, jobs, &pool, model)
					rows = append(rows, drawnRow{q.run(b, text, false), q.run(b, "simple", false)})
				}
				if base == nil {
					base = rows
				}
				b.Logf("%s: %s", text, queueLine(rows, base))
			}
		})
	}
}

// queueLine returns what a policy comes to against Simple, and against the first policy.
func queueLine(rows, base []drawnRow) string {
	n, beyond := len(rows), 0
	for i := range rows {
		if rows[i].ours.longest > 3*rows[i].simple.longest {
			beyond++
		}
	}
	more := func(energyWeight, waitWeight float64) string {
		all, half := jackknife(n, func(without int) float64 {
			energy, wait := rest(rows, without)
			baseEnergy, baseWait := rest(base, without)
			return energyWeight*(energy-baseEnergy) + waitWeight*(wait-baseWait)
		})
		return fmt.Sprintf("%+.2f±%.2f", all, half)
	}
	e, eHalf := jackknife(n, func(without int) float64 { energy, _ := rest(rows, without); return energy })
	w, wHalf := jackknife(n, func(without int) float64 { _, wait := rest(rows, without); return wait })
	return fmt.Sprintf("energy %+.2f±%.2f %% waiting %+.2f±%.2f %%, %d of %d queues beyond 3 times; to the "+
		"first: energy %s waiting %s, twice energy and waiting %s",
		e, eHalf, w, wHalf, beyond, n, more(1, 0), more(0, 1), more(2, 1))
}
