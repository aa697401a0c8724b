package pick

import (
	"math"
	"slices"

	"github.com/epplan/epplan/planner"
)

// yardstick plays Simple beside the real run, by predictions alone, to tell how
// long tasks would wait there.
type yardstick struct {
	total   []float64 // GPUs by class
	running []virtual
	last    float64 // start of the task that started last: none overtakes
	longest float64 // wait so far, seconds
}

// virtual is a task that runs under Simple.
type virtual struct {
	end, gpus float64
	class     int
}

func newYardstick(v *planner.View) *yardstick { return &yardstick{total: newUse(v).total} }

// arrive adds a task: first come, first served, its start follows at once.
func (y *yardstick) arrive(arrival float64, pairs []pair) {
	if len(pairs) == 0 {
		return
	}
	now := max(arrival, y.last)
	for {
		y.running = slices.DeleteFunc(y.running, func(r virtual) bool { return r.end <= now })
		for i := range pairs {
			if p := &pairs[i]; p.GPUs <= y.free(p.class)+shareSlack {
				y.running = append(y.running, virtual{end: now + p.Time, gpus: p.GPUs, class: p.class})
				y.last, y.longest = now, max(y.longest, now-arrival)
				return
			}
		}
		next := math.Inf(1)
		for i := range y.running {
			next = min(next, y.running[i].end)
		}
		if math.IsInf(next, 1) {
			return // no node has as many GPUs as its class has in all
		}
		now = next
	}
}

func (y *yardstick) free(class int) float64 {
	free := y.total[class]
	for i := range y.running {
		if y.running[i].class == class {
			free -= y.running[i].gpus
		}
	}
	return free
}
