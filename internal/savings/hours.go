package savings

import (
	"time"

	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// Slot is the GPU energy of runs in a part of time, joules.
type Slot struct {
	Used    float64
	HeldOut float64 // of Used
	// Default is what they would have used at default clocks by the models; of runs without a prediction what
	// they used.
	Default float64
}

// Slots divides a period into parts of one length and spreads the energy of each run evenly over its run
// time. What a run used before or after the period isn't in it, nor is a run that took no time.
func Slots(runs []record.RunEnergy, from time.Time, length time.Duration, count int) []Slot {
	slots := make([]Slot, count)
	for i := range runs {
		r := &runs[i]
		begin, end := r.Started.Sub(from), r.Ended.Sub(from)
		if end <= begin {
			continue
		}
		for k := max(0, int(begin/length)); k < count && time.Duration(k)*length < end; k++ {
			slot := time.Duration(k) * length
			inside := min(end, slot+length) - max(begin, slot)
			slots[k].add(r, max(0, float64(inside)/float64(end-begin)))
		}
	}
	return slots
}

// add adds a part of a run.
func (s *Slot) add(r *record.RunEnergy, part float64) {
	s.Used += part * r.GPUJ
	s.Default += part * r.DefaultJ.Or(r.GPUJ)
	if r.Arm == live.ArmHeldOut {
		s.HeldOut += part * r.GPUJ
	}
}
