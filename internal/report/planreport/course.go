package planreport

import (
	"cmp"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// powerCause is what power goes into.
type powerCause int

// The causes, as they lie above each other in pictures. Switching nodes on is no
// power but energy at a moment.
const (
	causeRun powerCause = iota
	causeHost
	causeIdle
	causeSleep
	causeCount
)

// causeStyles are the names and the classes of causes.
var causeStyles = [causeCount]struct{ name, class string }{
	causeRun: {"run", "prun"}, causeHost: {"host", "phost"}, causeIdle: {"idle", "pidle"},
	causeSleep: {"sleep", "psleep"},
}

type causeWatts [causeCount]float64

func (w *causeWatts) total() float64 {
	sum := 0.0
	for _, v := range w {
		sum += v
	}
	return sum
}

// powerTimeline is the power of a plan over time: each holds from its time to the next
// one, and the last one is 0.
type powerTimeline struct {
	at          []float64 // seconds, ascending
	power       []causeWatts
	energyJumps []energyJump // by time
}

// energyJump is energy at a moment: nodes that are switched on.
type energyJump struct{ at, joules float64 }

// powerChange is power that begins or ends.
type powerChange struct {
	at, watts float64
	cause     powerCause
}

// newPowerTimeline takes a plan apart: what [planner.Account] adds up, over time.
func newPowerTimeline(p *planner.Problem, plan *planner.Plan) *powerTimeline {
	c := &powerTimeline{}
	var steps []powerChange
	hold := func(k powerCause, power dvfsmodel.Watt, from, to float64) {
		if power != 0 && to > from {
			steps = append(steps, powerChange{from, float64(power), k}, powerChange{to, -float64(power), k})
		}
	}
	c.addNodes(p, plan, hold)
	eachRun(p, plan, func(node int, power, gpus, from, to float64) {
		class := &p.Cluster.Classes[plan.Nodes[node].Class]
		hold(causeRun, dvfsmodel.Watt(power), from, to)
		hold(causeIdle, -class.IdleW*dvfsmodel.Watt(gpus), from, to)
	})
	slices.SortFunc(steps, func(a, b powerChange) int { return cmp.Compare(a.at, b.at) })
	var now causeWatts
	for i, s := range steps {
		now[s.cause] += s.watts
		if i+1 == len(steps) {
			now = causeWatts{}
		}
		if n := len(c.at); n > 0 && c.at[n-1] == s.at {
			c.power[n-1] = now
			continue
		}
		c.at, c.power = append(c.at, s.at), append(c.power, now)
	}
	slices.SortFunc(c.energyJumps, func(a, b energyJump) int { return cmp.Compare(a.at, b.at) })
	return c
}

// addNodes adds what nodes take that are on, or off.
func (c *powerTimeline) addNodes(
	p *planner.Problem, plan *planner.Plan, hold func(k powerCause, power dvfsmodel.Watt, from, to float64),
) {
	payTurnOn := p.Mode != planner.Offline || p.Cluster.OfflineTurnOn
	for i := range plan.Nodes {
		class := &p.Cluster.Classes[plan.Nodes[i].Class]
		gpus := dvfsmodel.Watt(class.GPUs)
		hold(causeSleep, class.SleepW, 0, plan.Ledger.End)
		for _, on := range plan.Nodes[i].On {
			hold(causeIdle, class.IdleW*gpus, on.From, on.To)
			hold(causeHost, class.HostW*gpus, on.From, on.To)
			hold(causeSleep, -class.SleepW, on.From, on.To)
			if payTurnOn && class.TurnOn > 0 {
				c.energyJumps = append(c.energyJumps, energyJump{
					on.From, float64(class.TurnOn) * float64(class.GPUs),
				})
			}
		}
	}
}

// eachRun yields what runs: power and how many GPUs' worth it occupies. On GPUs that
// are shared by profile that is the GPU, whatever is on it.
func eachRun(p *planner.Problem, plan *planner.Plan, yield func(node int, power, gpus, from, to float64)) {
	apart := make(map[int]bool)
	if plan.Shared != nil {
		for _, task := range plan.Shared.Tasks {
			apart[task] = true
		}
		for i := range plan.Shared.ClockIntervals {
			s := &plan.Shared.ClockIntervals[i]
			yield(s.Node, p.Cluster.Sharing.Physics.PowerAt(s.MHz), 1, s.From, s.To)
		}
	}
	for i := range plan.Assignments {
		a, t := &plan.Assignments[i], &p.Tasks[i]
		if took := a.End - a.Start; a.Node >= 0 && !apart[i] && took > 0 {
			parts := float64(1 + len(a.More))
			for part := range a.Parts {
				gpus := float64(part.GPUs.Len())
				if t.Share < 1 {
					gpus = t.Share
				}
				yield(int(part.Node), float64(a.Energy(t))/took/parts, gpus, a.Start, a.End)
			}
		}
	}
}

// end returns when the last power is gone.
func (c *powerTimeline) end() float64 {
	if len(c.at) == 0 {
		return 0
	}
	return c.at[len(c.at)-1]
}

func (c *powerTimeline) peak() float64 {
	highest := 0.0
	for i := range c.power {
		highest = max(highest, c.power[i].total())
	}
	return highest
}

// energyUntil returns the energy by cause up to each of some times, ascending, and what was
// switched on by then.
func (c *powerTimeline) energyUntil(times []float64) (byCause []causeWatts, on []float64) {
	byCause, on = make([]causeWatts, len(times)), make([]float64, len(times))
	var sum causeWatts
	i, j, jumped := 0, 0, 0.0
	last := 0.0
	advance := func(to float64) {
		if i > 0 {
			for k := range sum {
				sum[k] += c.power[i-1][k] * (to - last)
			}
		}
		last = to
	}
	for n, t := range times {
		for i < len(c.at) && c.at[i] <= t {
			advance(c.at[i])
			i++
		}
		advance(t)
		for j < len(c.energyJumps) && c.energyJumps[j].at <= t {
			jumped += c.energyJumps[j].joules
			j++
		}
		byCause[n], on[n] = sum, jumped
	}
	return byCause, on
}

// evenTimes are count+1 times from 0 to an end.
func evenTimes(end float64, count int) []float64 {
	times := make([]float64, count+1)
	for i := range times {
		times[i] = end * float64(i) / float64(count)
	}
	return times
}

// downsample returns the course with at most so many steps: of more, means over equal
// spans, which take the same energy.
func (c *powerTimeline) downsample(most int) *powerTimeline {
	if len(c.at) <= most {
		return c
	}
	times := evenTimes(c.end(), most)
	sums, _ := c.energyUntil(times)
	out := &powerTimeline{at: times, power: make([]causeWatts, len(times)), energyJumps: c.energyJumps}
	for i := range most {
		for k := range sums[i] {
			out.power[i][k] = (sums[i+1][k] - sums[i][k]) / (times[i+1] - times[i])
		}
	}
	return out
}
