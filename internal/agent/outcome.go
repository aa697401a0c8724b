package agent

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// Close returns what the run came to as it goes into the records: the sums of its GPUs, and
// of what was measured only what is to be believed.
func (s *Sampler) Close(at time.Time) record.Outcome {
	out := s.outcome
	out.Ended, out.Series, out.Readings = at, s.series.Series(), s.readings.Readings()
	lasted := at.Sub(out.Started).Seconds()
	if !s.partial {
		out.TimeS = live.Known(lasted)
	}
	out.ThrottledS = make(map[string]float64)
	uuids := slices.Sorted(maps.Keys(s.gpus))
	sum := totals{source: record.Counter, memory: -1}
	for _, uuid := range uuids {
		sum.add(s.gpus[uuid], &out)
	}
	sum.fillOutcome(&out, s.partial)
	if host := s.hostShare(lasted); host >= 0 && out.GPUSource != record.Unmeasured {
		out.NodeEnergyJ, out.NodeSource = live.Known(sum.energy+float64(host)), record.RAPL
	}
	out.Profile, out.Shared = s.profile.profile(uuids), out.Shared || s.profile.shared
	return out
}

// maxMissed is the part of a run for which the host's energy may be filled in
// by its mean.
const maxMissed = 0.1

// hostShare returns the run's part of what the node's CPUs and memory used over all of its time;
// -1 unless enough of it was measured.
func (s *Sampler) hostShare(lasted float64) dvfsmodel.Joule {
	if !(s.hostCovered > 0) || s.partial || s.hostCovered < (1-maxMissed)*lasted {
		return -1
	}
	return s.hostEnergy * dvfsmodel.Joule(max(1, lasted/s.hostCovered))
}

// workClock sums a core clock over the time in which GPUs were at work.
type workClock struct{ seconds, mhz, mhz2 float64 }

// add takes so many seconds at work at a clock.
func (w *workClock) add(seconds, mhz float64) {
	w.seconds, w.mhz, w.mhz2 = w.seconds+seconds, w.mhz+seconds*mhz, w.mhz2+seconds*mhz*mhz
}

// record returns the mean and the standard deviation.
func (w *workClock) record() (out record.WorkClock) {
	if !(w.seconds > 0) {
		return out
	}
	mean := w.mhz / w.seconds
	return record.WorkClock{
		CoreMHz:   live.Known(mean),
		SpreadMHz: live.Known(math.Sqrt(max(0, w.mhz2/w.seconds-mean*mean))),
	}
}

// maxUncovered is the part of a run without energy for which its energy still
// counts.
const maxUncovered = 0.1

// totals add up a run's GPUs.
type totals struct {
	energy, power, peak float64
	usage               float64 // of those that told it
	telling             int
	memory              int64 // negative: not known
	gpus                int
	work                workClock
	source              record.Source
}

func (t *totals) add(g *gpuTally, out *record.Outcome) {
	e := g.energy.Sum()
	switch {
	case e.Source == gpu.FromNoMeasures || e.Uncovered.Seconds() > maxUncovered*g.covered:
		t.source = record.Unmeasured
	case e.Source != gpu.FromCounter && t.source == record.Counter:
		t.source = record.Integrated
	}
	t.gpus++
	t.energy += float64(e.Joules)
	t.power += float64(e.Mean())
	t.peak += float64(e.Peak)
	if g.used > 0 {
		t.usage += g.usage / g.used
		t.telling++
	}
	t.memory = max(t.memory, g.peakMem)
	if limit, others := g.limit(); limit > 0 {
		out.CapW = live.Known(min(out.CapW.Or(math.Inf(1)), float64(limit)))
		if others > 0 {
			out.OtherCapsS = live.Known(max(out.OtherCapsS.Or(0), others))
		}
	}
	t.work = workClock{t.work.seconds + g.work.seconds, t.work.mhz + g.work.mhz, t.work.mhz2 + g.work.mhz2}
	out.Clocks = append(out.Clocks, g.residencies()...)
	for i, reason := range throttleReasons {
		if g.throttled[i] > 0 {
			out.ThrottledS[reason.word] += g.throttled[i]
		}
	}
}

func (t *totals) fillOutcome(out *record.Outcome, partial bool) {
	out.WorkClock = t.work.record()
	if t.gpus == 0 || t.source == record.Unmeasured {
		return
	}
	if !partial {
		out.GPUEnergyJ, out.GPUSource = live.Known(t.energy), t.source
	}
	out.MeanPowerW, out.PeakPowerW = live.Known(t.power), live.Known(t.peak)
	out.Utilisation = live.Known(t.usage / float64(t.telling))
	if t.memory >= 0 {
		out.PeakMemoryBytes = live.Known(float64(t.memory))
	}
}

// limit returns the power limit that was in force, of several the one for the longest time, and
// how long others were; 0: not known.
func (t *gpuTally) limit() (limit dvfsmodel.Watt, others float64) {
	longest := 0.0
	others = t.otherLimits
	for _, is := range slices.Sorted(maps.Keys(t.limits)) {
		d := t.limits[is]
		if others += d; d > longest {
			limit, longest = is, d
		}
	}
	return limit, others - longest
}

// residencies returns the GPU's clocks by falling time.
func (t *gpuTally) residencies() (list []live.Residency) {
	for pair, d := range t.clocks {
		list = append(list, live.Residency{
			Setting: dvfsmodel.Setting{Core: pair[0], Mem: pair[1]}, Seconds: d,
		})
	}
	slices.SortFunc(list, func(x, y live.Residency) int {
		return cmp.Or(cmp.Compare(y.Seconds, x.Seconds), cmp.Compare(x.Core, y.Core),
			cmp.Compare(x.Mem, y.Mem))
	})
	return list
}

// spannedEnergy returns the energy of a run of which the agent saw a part alone, by its GPUs' counters, which
// were read after end; not known if one of them doesn't tell.
func (s *Sampler) spannedEnergy(end time.Time) (sum live.Number) {
	for _, uuid := range slices.Sorted(maps.Keys(s.gpus)) {
		t := s.gpus[uuid]
		e := t.energy.Sum()
		counted := e.Resets == 0 && (e.Source == gpu.FromCounter || t.samples == 1 && gpu.IsMeasured(t.count))
		if !(counted && t.first >= 0 && t.last.After(end) && t.count > t.first) {
			return live.Number{}
		}
		sum = live.Known(sum.Or(0) + float64(t.count-t.first))
	}
	return sum
}
