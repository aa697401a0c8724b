package predict

import (
	"math"
	"slices"
)

// pastByKey is what past jobs took, as a track of values by key. Most keys are met once,
// by jobs that are never run again: of those only the value and the end are kept.
type pastByKey struct {
	many    map[hash]*track
	singles map[hash]singleValue
	kept    int // values of a track
	most    int // keys met once that are remembered; 0: all
}

// singleValue is a track of one value. The end is negative where the job didn't complete.
type singleValue struct{ v, end float64 }

func newPastByKey(s *Settings) *pastByKey {
	return &pastByKey{
		many: map[hash]*track{}, singles: map[hash]singleValue{}, kept: max(maxUnordered, s.ValuesPerKey),
		most: s.MaxSingleKeys,
	}
}

// scratchTrack is where a track of one value is made up.
type scratchTrack struct {
	track track
	value [1]float64
}

// track returns what is remembered under a key; nil: nothing. It is good until the spare
// one is used again.
func (s *pastByKey) track(k hash, into *scratchTrack) *track {
	if t := s.many[k]; t != nil {
		return t
	}
	one, known := s.singles[k]
	if !known {
		return nil
	}
	into.value[0] = one.v
	into.track = track{smooth: one.v, completed: 1, last: math.Abs(one.end), count: 1, ring: into.value[:]}
	if math.Signbit(one.end) {
		into.track.completed, into.track.failed = 0, 1
	}
	return &into.track
}

// add remembers a value under a key.
func (s *pastByKey) add(k hash, v, end float64, completed bool) {
	if t := s.many[k]; t != nil {
		t.add(v, end, completed, s.kept)
		return
	}
	one, known := s.singles[k]
	if known {
		t := &track{}
		t.add(one.v, math.Abs(one.end), !math.Signbit(one.end), s.kept)
		t.add(v, end, completed, s.kept)
		s.many[k] = t
		delete(s.singles, k)
		return
	}
	if !completed {
		end = math.Copysign(end, -1)
	}
	if s.most > 0 && len(s.singles) >= s.most {
		s.dropOldSingles()
	}
	s.singles[k] = singleValue{v, end}
}

// dropOldSingles drops the older half of the keys that were met once.
func (s *pastByKey) dropOldSingles() {
	ends := make([]float64, 0, len(s.singles))
	for _, one := range s.singles {
		ends = append(ends, math.Abs(one.end))
	}
	slices.Sort(ends)
	limit := ends[len(ends)/2]
	for k, one := range s.singles {
		if math.Abs(one.end) <= limit {
			delete(s.singles, k)
		}
	}
}
