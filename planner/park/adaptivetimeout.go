package park

import (
	"math"

	"github.com/epplan/epplan/planner"
)

// Periodic is the periodic sleep of the CATS paper (algorithm 3): every Tau
// seconds whatever has nothing to do goes to sleep; with a Tau of 0, at once.
type Periodic struct{ Tau float64 }

// PaperTau is the paper's period, seconds.
const PaperTau = 0.1

// OffAt returns the next time at which the rule looks.
func (p Periodic) OffAt(_ *planner.Cluster, lastEnd float64) float64 {
	if p.Tau == 0 {
		return lastEnd
	}
	return (math.Floor(lastEnd/p.Tau) + 1) * p.Tau
}

// AdaptiveTimeout is the policy break-even: a node waits as long as [Threshold] says for
// the last gaps between tasks that were seen of nodes of its class.
type AdaptiveTimeout struct{}

// OffAt is at once: what the nodes of one run do is said by Watch.
func (AdaptiveTimeout) OffAt(_ *planner.Cluster, lastEnd float64) float64 { return lastEnd }

// NewNodeParker returns the parker of one run.
func (AdaptiveTimeout) NewNodeParker(v *planner.View) planner.NodeParker {
	return &adaptiveTimeout{
		v: v, idle: map[int]float64{}, gaps: make([][]float64, len(v.Problem.Cluster.Classes)),
	}
}

const (
	maxGaps = 64 // of a class that are remembered
	// maxBreakEven is the longest time to break even, seconds: where sleeping saves
	// next to nothing, a node still sleeps in the end.
	maxBreakEven = 3600
	// thresholdMargin is for how many seconds a node is on beyond the threshold, so that a
	// gap exactly as long doesn't put it to sleep as the next task starts.
	thresholdMargin = 1e-9
)

type adaptiveTimeout struct {
	v    *planner.View
	idle map[int]float64 // by node that has nothing to do, or sleeps: since when
	gaps [][]float64     // by class: how long nodes had nothing to do, the latest
}

// OffAt waits from the last end on.
func (b *adaptiveTimeout) OffAt(node int, lastEnd float64) float64 {
	if since, known := b.idle[node]; known && lastEnd > since {
		b.noteGap(node, b.v.Now-since) // it slept, and is switched on
	}
	b.idle[node] = lastEnd
	class := b.v.Node(node).Class
	return lastEnd + Threshold(b.gaps[class], breakEvenTime(&b.v.Problem.Cluster.Classes[class])) +
		thresholdMargin
}

// Busy ends the gap of a node.
func (b *adaptiveTimeout) Busy(node int) {
	if since, known := b.idle[node]; known {
		b.noteGap(node, b.v.Now-since)
		delete(b.idle, node)
	}
}

func (b *adaptiveTimeout) noteGap(node int, gap float64) {
	if gap <= 0 {
		return
	}
	gaps := &b.gaps[b.v.Node(node).Class]
	if len(*gaps) == maxGaps {
		*gaps = append((*gaps)[:0], (*gaps)[1:]...)
	}
	*gaps = append(*gaps, gap)
}

// breakEvenTime returns how long a node of a class idles for what sleeping and waking
// up again costs, seconds.
func breakEvenTime(k *planner.NodeClass) float64 {
	wake := float64(k.TurnOn) * float64(k.GPUs)
	saved := float64(k.GPUs)*float64(k.IdleW+k.HostW) - float64(k.SleepW)
	if wake+k.TurnOnDelay == 0 {
		return 0
	}
	if !(saved > 0) {
		return maxBreakEven
	}
	return min(maxBreakEven, wake/saved+k.TurnOnDelay)
}
