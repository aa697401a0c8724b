package record

import (
	"time"

	"github.com/epplan/epplan/live"
)

// Interval is a prediction with its calibrated bounds.
type Interval struct {
	Value live.Number `json:"value"`
	Low   live.Number `json:"low"`
	High  live.Number `json:"high"`
}

// Micro is a time as records keep it: UTC, whole microseconds. The zero time,
// which stands for unknown, stays zero.
func Micro(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}
