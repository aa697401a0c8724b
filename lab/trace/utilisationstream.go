package trace

import (
	"io"
	"math"
)

// UtilisationSlot is what each series of a log did in one slot.
type UtilisationSlot struct {
	Time    float64   // at which the slot begins, seconds as the log has them
	IDs     []string  // of the series seen so far; new ones come last
	UtilPct []float64 // by series, the mean of its GPUs; NaN: no sample
}

// StreamUtilisation reads the same logs as [ReadUtilisation], whose columns of
// memory may be missing, and calls back slot by slot: a slot without any sample
// too. It keeps one slot at a time, so lines have to be sorted by time over all
// GPUs. What it calls back with is valid until the callback returns, whose error
// ends the reading. A log with more than so many series is an error.
func StreamUtilisation(
	r io.Reader, name string, slotS float64, most int, slot func(*UtilisationSlot) error,
) (*UtilisationSkips, error) {
	t, err := openTable(r, name)
	if err != nil {
		return nil, err
	}
	s := &utilisationStream{
		utilisationReader: &utilisationReader{table: t, slotS: slotS, index: make(map[string]int)},
		call:              slot, maxSeries: most, at: make(map[string]int),
	}
	if err := s.locate(); err != nil {
		return nil, err
	}
	if err := s.eachRecord(s.addRecord); err != nil {
		return nil, err
	}
	if !s.begun {
		return nil, s.table.errorAt(-1, "no samples, want lines with a utilisation")
	}
	return &s.UtilisationSkips, s.flush()
}

// utilisationStream is a log being read slot by slot.
type utilisationStream struct {
	*utilisationReader

	call      func(*UtilisationSlot) error
	maxSeries int // series
	begun     bool
	slot      int64          // the slot that is being read
	at        map[string]int // series by name
	now       UtilisationSlot
	gpus      []float64 // by series: how many of its GPUs have samples in the slot
}

// addRecord takes over the current record.
func (s *utilisationStream) addRecord() error {
	next, ok, err := s.sample()
	if err != nil || !ok {
		return err
	}
	if !s.begun {
		s.begun, s.slot = true, next.slot
	}
	if next.slot < s.slot {
		return s.table.errorAt(s.columns[logTime].At, "time goes back, want all lines sorted by time")
	}
	if missing := next.slot - s.slot; missing > maxLogSlots {
		return s.table.errorAt(s.columns[logTime].At, "%d slots without a sample, want fewer: longer slots",
			missing)
	}
	for s.slot < next.slot {
		if err := s.flush(); err != nil {
			return err
		}
		s.slot++
	}
	return s.addSample(&next)
}

// flush hands the slot over, and begins the next one.
func (s *utilisationStream) flush() error {
	for i := range s.now.UtilPct {
		s.now.UtilPct[i], s.gpus[i] = 0, 0
	}
	for i := range s.pieces {
		p := &s.pieces[i]
		if len(p.cells) == 0 {
			continue
		}
		k, known := s.at[p.id]
		if !known {
			if k = len(s.now.IDs); k == s.maxSeries {
				return s.table.errorAt(-1, "more than %d GPUs or jobs, want fewer", s.maxSeries)
			}
			s.at[p.id] = k
			s.now.IDs, s.now.UtilPct, s.gpus = append(s.now.IDs, p.id), append(s.now.UtilPct, 0),
				append(s.gpus, 0)
		}
		s.now.UtilPct[k] += p.cells[0].sum / p.cells[0].n
		s.gpus[k]++
		p.cells = p.cells[:0]
	}
	for i, n := range s.gpus {
		if s.now.UtilPct[i] /= n; n == 0 {
			s.now.UtilPct[i] = math.NaN()
		}
	}
	s.now.Time = float64(s.slot) * s.slotS
	return s.call(&s.now)
}
