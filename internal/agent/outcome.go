package agent

import (
	"math"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// Record returns what the run came to as it goes into the records: the sums of its GPUs, and
// of what was measured only what is to be believed.
func (c *ClosedRun) Record() *record.Outcome {
	out := &record.Outcome{
		RunID: c.Run.ID, JobID: int64(c.Run.Job), Node: c.Run.Node,
		Started: c.Run.Started, Ended: c.Outcome.Ended, GPUs: c.Run.GPUs,
		ThrottledS: map[string]float64{}, Course: c.Outcome.Course, Details: c.Outcome.Details,
	}
	if out.NotLocked = c.NotLocked(); c.HandsOff == "" && out.NotLocked == (live.NotLocked{}) {
		out.Setting = c.Run.Setting
	}
	if low := c.Outcome.Lowest; out.Setting != (dvfsmodel.Setting{}) && low != (dvfsmodel.Setting{}) {
		out.Setting = low
	} else {
		out.Slowdown = live.Number{}
	}
	if !c.Outcome.Partial {
		out.TimeS = live.Known(c.Outcome.Ended.Sub(c.Run.Started).Seconds())
	}
	sum := totals{source: record.Counter}
	for i := range c.Outcome.GPUs {
		sum.add(&c.Outcome.GPUs[i], out)
	}
	sum.fill(out, c.Outcome.Partial)
	out.WorkClock = sum.work.record()
	out.Restarted.GPUEnergyJ = c.Outcome.spanned()
	if host, known := c.Outcome.Host(); known && out.GPUSource != record.Unmeasured {
		out.NodeEnergyJ, out.NodeSource = live.Known(sum.energy+float64(host)), record.RAPL
	}
	out.DropShared()
	return out
}

// record returns the mean and the standard deviation.
func (w *WorkClock) record() (out record.WorkClock) {
	if !(w.Seconds > 0) {
		return out
	}
	mean := w.MHz / w.Seconds
	return record.WorkClock{
		CoreMHz:   live.Known(mean),
		SpreadMHz: live.Known(math.Sqrt(max(0, w.MHz2/w.Seconds-mean*mean))),
	}
}

// spanned returns the energy of a run of which the agent saw a part alone, by its GPUs' counters;
// not known if one of them doesn't tell.
func (o *Outcome) spanned() (sum live.Number) {
	if _, known := o.Restarted.TimeS.Get(); !known {
		return sum
	}
	for i := range o.GPUs {
		if !(o.GPUs[i].Spanned > 0) {
			return live.Number{}
		}
		sum = live.Known(sum.Or(0) + float64(o.GPUs[i].Spanned))
	}
	return sum
}

// mostUncovered is the part of a run without energy for which its energy still
// counts.
const mostUncovered = 0.1

// totals add up a run's GPUs.
type totals struct {
	energy, power, peak, usage float64
	memory                     int64
	gpus                       int
	work                       WorkClock
	source                     record.Source
}

func (t *totals) add(g *GPUOutcome, out *record.Outcome) {
	switch {
	case g.EnergyFrom == gpu.FromNoMeasures || g.Uncovered > mostUncovered*g.Covered:
		t.source = record.Unmeasured
	case g.EnergyFrom != gpu.FromCounter && t.source == record.Counter:
		t.source = record.Integrated
	}
	t.energy += float64(max(g.Energy, 0))
	t.power += float64(max(g.MeanPower, 0))
	t.peak += float64(max(g.PeakPower, 0))
	t.usage += max(g.Utilisation, 0)
	t.memory = max(t.memory, g.PeakMem)
	if g.Limit > 0 {
		out.CapW = live.Known(min(out.CapW.Or(math.Inf(1)), float64(g.Limit)))
	}
	if g.OtherLimits > 0 {
		out.OtherCapsS = live.Known(max(out.OtherCapsS.Or(0), g.OtherLimits))
	}
	t.gpus++
	t.work.Seconds += g.Work.Seconds
	t.work.MHz += g.Work.MHz
	t.work.MHz2 += g.Work.MHz2
	out.Clocks = append(out.Clocks, g.Clocks...)
	for reason, spent := range map[string]float64{
		"power-cap": g.PowerCapped, "thermal": g.Thermal,
		"hardware": g.Hardware,
	} {
		if spent > 0 {
			out.ThrottledS[reason] += spent
		}
	}
}

func (t *totals) fill(out *record.Outcome, partial bool) {
	if t.gpus == 0 || t.source == record.Unmeasured {
		return
	}
	if !partial {
		out.GPUEnergyJ, out.GPUSource = live.Known(t.energy), t.source
	}
	out.MeanPowerW, out.PeakPowerW = live.Known(t.power), live.Known(t.peak)
	out.Utilisation = live.Known(t.usage / float64(t.gpus))
	if t.memory >= 0 {
		out.PeakMemoryBytes = live.Known(float64(t.memory))
	}
}
