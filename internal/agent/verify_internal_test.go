package agent

import (
	"errors"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
)

// What a GPU that takes long to come down shows is no loss of its lock, and in one that waits
// again and again only the readings at work count.
func TestALockIsLostOnlyWhereReadingsAtWorkStayAboveIt(t *testing.T) {
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	lock := dvfsmodel.Setting{Core: 1000}
	busy := func(core dvfsmodel.MHz) gpu.Reading { return gpu.Reading{Core: core, Utilisation: 0.5} }
	idle := gpu.Reading{Core: 210, Throttle: gpu.ThrottleIdle}
	for name, c := range map[string]struct {
		every time.Duration
		shown []gpu.Reading // again and again
		first []gpu.Reading
		lost  bool
	}{
		"it comes down slowly": {
			10 * time.Millisecond,
			[]gpu.Reading{busy(1000)},
			[]gpu.Reading{busy(1500), busy(1500), busy(1500), busy(1400), busy(1200), busy(1025)},
			false,
		},
		"some bins above, as it is read":   {time.Second, []gpu.Reading{busy(1020), busy(985)}, nil, false},
		"above it, and waiting in between": {time.Second, []gpu.Reading{busy(1500), idle, idle}, nil, true},
		"above it now and then":            {time.Second, []gpu.Reading{busy(1500), busy(1000)}, nil, false},
		"above it, of an unknown utilisation": {
			time.Second, []gpu.Reading{{Core: 1500, Utilisation: -1}}, nil, true,
		},
		"above it without anything to do there": {time.Second, []gpu.Reading{{Core: 1500}}, nil, true},
	} {
		var w lockWatch
		w.begin(begin)
		lost := false
		for i := range 300 {
			r := c.shown[i%len(c.shown)]
			if i < len(c.first) {
				r = c.first[i]
			}
			r.At = begin.Add(time.Duration(i) * c.every)
			if err := w.observe(&r, lock, 0); err != nil {
				lost = lost || errors.Is(err, errLockLost)
			}
		}
		if lost != c.lost {
			t.Errorf("%s: lost %v, want %v", name, lost, c.lost)
		}
	}
}
