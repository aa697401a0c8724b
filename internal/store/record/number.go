package record

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Number is a quantity that may be unknown; its zero value is. In JSON an
// unknown number is null.
type Number struct {
	value float64
	known bool
}

// Known makes a Number. NaN and infinities are unknown.
func Known(v float64) Number {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Number{}
	}
	return Number{value: v, known: true}
}

// Get is the value, and whether it is known.
func (n Number) Get() (float64, bool) { return n.value, n.known }

// Or is the value, or other if it is unknown.
func (n Number) Or(other float64) float64 {
	if n.known {
		return n.value
	}
	return other
}

// Else is the number, or another one if it is unknown.
func (n Number) Else(other Number) Number {
	if n.known {
		return n
	}
	return other
}

// String is the value in its shortest form, or "unknown".
func (n Number) String() string {
	if !n.known {
		return "unknown"
	}
	return strconv.FormatFloat(n.value, 'g', -1, 64)
}

// MarshalJSON writes the value, or null.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.known {
		return []byte("null"), nil
	}
	return json.Marshal(n.value)
}

// UnmarshalJSON reads a number or null.
func (n *Number) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*n = Number{}
		return nil
	}
	var v float64
	if err := json.Unmarshal(text, &v); err != nil {
		return fmt.Errorf("a number or null is expected: %w", err)
	}
	*n = Known(v)
	return nil
}

// Interval is a prediction with its calibrated bounds.
type Interval struct {
	Value Number `json:"value"`
	Low   Number `json:"low"`
	High  Number `json:"high"`
}

// Micro is a time as records keep it: UTC, whole microseconds. The zero time,
// which stands for unknown, stays zero.
func Micro(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}
