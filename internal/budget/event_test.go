package budget_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/budget"
	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// measured is what a workload does under power limits.
type measured struct {
	caps, draws []dvfsmodel.Watt // ascending by cap
	times       []float64        // an epoch's, less than twice as long under a lower limit
}

// readMeasured reads what workloads did under limits.
func readMeasured(t *testing.T, file string) map[string]*measured {
	t.Helper()
	rows := shareddata.Rows(t, shareddata.Path(t, file))
	slices.SortStableFunc(rows, func(a, b map[string]string) int {
		return cmp.Compare(shareddata.Number(t, a["cap_w"]), shareddata.Number(t, b["cap_w"]))
	})
	all := make(map[string]*measured)
	for _, row := range rows {
		m := all[row["workload"]]
		if m == nil {
			m = &measured{}
			all[row["workload"]] = m
		}
		m.caps = append(m.caps, dvfsmodel.Watt(shareddata.Number(t, row["cap_w"])))
		m.times = append(m.times, shareddata.Number(t, row["epoch_s"]))
		m.draws = append(m.draws, dvfsmodel.Watt(shareddata.Number(t, row["power_w"])))
	}
	return all
}

// speed returns how fast it is under a limit, without one as 1, between measured limits in a straight line.
func (m *measured) speed(limit dvfsmodel.Watt) float64 {
	last := len(m.caps) - 1
	best := slices.Min(m.times)
	if limit >= m.caps[last] {
		return best / m.times[last]
	}
	at := 0
	for at+1 < last && m.caps[at+1] <= limit {
		at++
	}
	part := float64((limit - m.caps[at]) / (m.caps[at+1] - m.caps[at]))
	return best / (m.times[at] + part*(m.times[at+1]-m.times[at]))
}

// The published event: 256 GPUs take a quarter less for a while. What is kept of the throughput by limits
// that are divided, by one limit for all of as many watts, and by one limit for all of as much power drawn,
// which no limit guarantees.
func TestDividedLimitsKeepMoreThroughputThanOneLimitForAll(t *testing.T) {
	for _, file := range []string{"powercap/zeus_v100.csv", "powercap/zeus_a40.csv"} {
		all := readMeasured(t, file)
		var names []string
		for name, m := range all {
			if len(m.caps) >= 5 {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		var ours, uniform, drawn float64
		const mixes = 100
		for seed := range uint64(mixes) {
			rng := rand.New(rand.NewPCG(seed, 8))
			var kinds [6]*measured
			for i := range kinds {
				kinds[i] = all[names[rng.IntN(len(names))]]
			}
			o, u, d := playEvent(kinds[:], rng)
			if o < u-1e-9 {
				t.Errorf("%s, mix %d: %.4f of the throughput, one limit for all keeps %.4f", file, seed, o, u)
			}
			ours, uniform, drawn = ours+o/mixes, uniform+u/mixes, drawn+d/mixes
		}
		t.Logf("%s: %.4f of the throughput, one limit for all %.4f, of as much power drawn %.4f", file, ours,
			uniform, drawn)
	}
}

// playEvent returns which part of the throughput is kept.
func playEvent(kinds []*measured, rng *rand.Rand) (ours, uniform, drawn float64) {
	const gpus = 256
	demands := make([]budget.Demand, gpus)
	of := make([]*measured, gpus)
	var full dvfsmodel.Watt
	for i := range demands {
		m := kinds[rng.IntN(len(kinds))]
		of[i] = m
		last := len(m.caps) - 1
		full += m.draws[last]
		demands[i] = budget.Demand{Min: m.caps[0], Max: m.caps[last], Budgets: []int{0}}
		for at, limit := range m.caps {
			demands[i].Curve = append(demands[i].Curve, budget.Slowdown{Watts: limit, Times: 1 / m.speed(m.caps[at])})
		}
	}
	watts := max(full*3/4, gpus*kinds[0].caps[0])
	d := budget.Divide(demands, []dvfsmodel.Watt{watts})
	limit := watts / gpus
	for i := range demands {
		ours += of[i].speed(d.Watts[i]) / gpus
		uniform += of[i].speed(limit) / gpus
	}
	drawnLimit := of[0].caps[len(of[0].caps)-1]
	for draw := full; draw > watts && drawnLimit > limit; drawnLimit-- {
		draw = 0
		for i := range of {
			draw += of[i].draw(drawnLimit)
		}
	}
	for i := range of {
		drawn += of[i].speed(drawnLimit) / gpus
	}
	return ours, uniform, drawn
}

// draw returns what it draws under a limit.
func (m *measured) draw(limit dvfsmodel.Watt) dvfsmodel.Watt {
	for at := len(m.caps) - 1; at > 0; at-- {
		if m.caps[at-1] < limit {
			part := (limit - m.caps[at-1]) / (m.caps[at] - m.caps[at-1])
			return m.draws[at-1] + min(1, part)*(m.draws[at]-m.draws[at-1])
		}
	}
	return m.draws[0]
}
