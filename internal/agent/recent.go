package agent

import (
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/nodepower"
)

// A sampler remembers one by one what it was told for so long: a node seldom learns of
// a job's end later. At most so much: some three megabytes.
const (
	historySpan = 3 * time.Minute
	maxRecords  = 20_000
)

// sampleHistory is what a sampler was told last, so that a run can turn out to have ended
// before now.
type sampleHistory struct {
	past  *Sampler       // what was told before
	until time.Time      // the last of that; zero: there is none
	memos []sampleRecord // by time, of each GPU
}

// sampleRecord is something that a sampler was told: a reading of a GPU, or without a UUID a
// step of the host.
type sampleRecord struct {
	at      time.Time
	uuid    string
	reading gpu.Reading
	step    nodepower.EnergyStep
	part    float64
}

// add remembers something, and tells the past what is too old.
func (r *sampleHistory) add(m sampleRecord) {
	if r == nil {
		return
	}
	r.memos = append(r.memos, m)
	old := 0
	for ; m.at.Sub(r.memos[old].at) > historySpan || len(r.memos)-old > maxRecords; old++ {
		r.past.replay(&r.memos[old])
		r.until = r.memos[old].at
	}
	r.memos = r.memos[old:]
}

// replay is told again what another sampler was.
func (s *Sampler) replay(m *sampleRecord) {
	if m.uuid == "" {
		s.AddHost(m.at, m.step, m.part)
		return
	}
	s.Add(m.uuid, m.reading)
}

// samplerAt returns the sampler as it was at a time, once; nil where that is too long ago. What
// is known of the step that the time is in counts in proportion.
func (r *sampleHistory) samplerAt(end time.Time) *Sampler {
	if r == nil || r.until.After(end) {
		return nil
	}
	last := make(map[string]*gpu.Reading)
	for i := range r.memos {
		m := &r.memos[i]
		switch {
		case !m.at.After(end):
			r.past.replay(m)
			last[m.uuid] = &m.reading
		case m.uuid == "":
			r.past.AddHost(end, stepUntil(m.step, m.at, end), m.part)
		case last[m.uuid] != nil:
			r.past.Add(m.uuid, interpolate(last[m.uuid], &m.reading, end))
			delete(last, m.uuid)
		}
	}
	return r.past
}

// stepUntil returns the part of a step before a time.
func stepUntil(step nodepower.EnergyStep, ended, at time.Time) nodepower.EnergyStep {
	whole := step.Time
	if step.Time = max(0, whole-ended.Sub(at)); whole > 0 {
		step.Energy *= dvfsmodel.Joule(step.Time.Seconds() / whole.Seconds())
	}
	return step
}

// interpolate returns what would have been read between two readings: the work of the second
// one's sample period, at the memory of the first.
func interpolate(first, second *gpu.Reading, at time.Time) gpu.Reading {
	part := at.Sub(first.At).Seconds() / second.At.Sub(first.At).Seconds()
	r := *second
	r.At, r.MemUsed = at, first.MemUsed
	if gpu.IsMeasured(first.Power) && gpu.IsMeasured(second.Power) {
		r.Power = first.Power + dvfsmodel.Watt(part)*(second.Power-first.Power)
	}
	if gpu.IsMeasured(first.Energy) && gpu.IsMeasured(second.Energy) && second.Energy >= first.Energy {
		r.Energy = first.Energy + dvfsmodel.Joule(part)*(second.Energy-first.Energy)
	}
	return r
}
