package predict

import (
	"math"
	"slices"
)

// shelf has tracks by their keys. Most keys are met once, by jobs that are never run
// again: of those only the value and the end are kept.
type shelf struct {
	many map[hash]*track
	once map[hash]single
	kept int // values of a track
	most int // keys met once that are remembered; 0: all
}

// single is a track of one value. The end is negative where the job didn't complete.
type single struct{ v, end float64 }

func newShelf(s *Settings) *shelf {
	return &shelf{many: map[hash]*track{}, once: map[hash]single{}, kept: max(few, s.Kept), most: s.Once}
}

// spare is where a track of one value is made up.
type spare struct {
	track track
	value [1]float64
}

// track is what is remembered under a key; nil: nothing. It is good until the spare
// one is used again.
func (s *shelf) track(k hash, into *spare) *track {
	if t := s.many[k]; t != nil {
		return t
	}
	one, known := s.once[k]
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
func (s *shelf) add(k hash, v, end float64, completed bool) {
	if t := s.many[k]; t != nil {
		t.add(v, end, completed, s.kept)
		return
	}
	one, known := s.once[k]
	if known {
		t := &track{}
		t.add(one.v, math.Abs(one.end), !math.Signbit(one.end), s.kept)
		t.add(v, end, completed, s.kept)
		s.many[k] = t
		delete(s.once, k)
		return
	}
	if !completed {
		end = math.Copysign(end, -1)
	}
	if s.most > 0 && len(s.once) >= s.most {
		s.forget()
	}
	s.once[k] = single{v, end}
}

// forget drops the older half of the keys that were met once.
func (s *shelf) forget() {
	ends := make([]float64, 0, len(s.once))
	for _, one := range s.once {
		ends = append(ends, math.Abs(one.end))
	}
	slices.Sort(ends)
	limit := ends[len(ends)/2]
	for k, one := range s.once {
		if math.Abs(one.end) <= limit {
			delete(s.once, k)
		}
	}
}
