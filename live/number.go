package live

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

// Get returns the value, and whether it is known.
func (n Number) Get() (float64, bool) { return n.value, n.known }

// Or returns the value, or other if it is unknown.
func (n Number) Or(other float64) float64 {
	if n.known {
		return n.value
	}
	return other
}

// Else returns the number, or another one if it is unknown.
func (n Number) Else(other Number) Number {
	if n.known {
		return n
	}
	return other
}

// Duration returns the value as a time span in seconds: 0 if it is unknown or less than 0,
// and a century at most.
func (n Number) Duration() time.Duration {
	const longest = 100 * 365 * 24 * 3600.0
	if !(n.value > 0) {
		return 0
	}
	return time.Duration(math.Round(min(n.value, longest) * float64(time.Second)))
}

// String returns the value in its shortest form, or "unknown".
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
