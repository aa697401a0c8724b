package live

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Limit is how long a job may run. It is unset where nobody stated one, or nobody knows
// it: that is its zero value. In JSON it is null, "unlimited", or seconds.
type Limit struct {
	d time.Duration // 0: unset; unlimited: no end
}

const unlimited time.Duration = math.MaxInt64

// LimitOf returns a limit of so long; one of 0 or less is the least there is, a nanosecond.
func LimitOf(d time.Duration) Limit { return Limit{max(d, 1)} }

// Unlimited is that a job may run for as long as it likes.
func Unlimited() Limit { return Limit{unlimited} }

// LimitOfSeconds returns a limit in seconds, to the microsecond, which years of seconds still
// tell: +Inf is unlimited, and what can't be one, such as NaN or less than 0, unset.
func LimitOfSeconds(s float64) Limit {
	switch {
	case !(s >= 0):
		return Limit{}
	case s*float64(time.Second) >= float64(unlimited):
		return Unlimited()
	}
	return LimitOf(time.Duration(math.Round(s*1e6)) * time.Microsecond)
}

// IsSet reports whether somebody stated how long the job may run, were it without end.
func (l Limit) IsSet() bool { return l.d != 0 }

// IsUnlimited reports whether the job may run for as long as it likes.
func (l Limit) IsUnlimited() bool { return l.d == unlimited }

// Duration returns how long the job may run; false: without end, or nobody knows.
func (l Limit) Duration() (time.Duration, bool) {
	if l.d == 0 || l.d == unlimited {
		return 0, false
	}
	return l.d, true
}

// Seconds returns how long the job may run; +Inf: without end, or nobody knows.
func (l Limit) Seconds() float64 {
	if d, ok := l.Duration(); ok {
		return d.Seconds()
	}
	return math.Inf(1)
}

// Map returns the limit with another duration, where it has one.
func (l Limit) Map(f func(time.Duration) time.Duration) Limit {
	if d, ok := l.Duration(); ok {
		return LimitOf(f(d))
	}
	return l
}

// Words returns the limit for people, a duration by format: "not known", "unlimited", or that.
func (l Limit) Words(format func(seconds float64) string) string {
	switch d, ok := l.Duration(); {
	case ok:
		return format(d.Seconds())
	case l.IsUnlimited():
		return "unlimited"
	}
	return "not known"
}

// String returns the limit in a message.
func (l Limit) String() string {
	return l.Words(func(float64) string { return l.d.String() })
}

var unlimitedJSON = []byte(`"unlimited"`)

// MarshalJSON is null, "unlimited", or seconds.
func (l Limit) MarshalJSON() ([]byte, error) {
	switch d, ok := l.Duration(); {
	case ok:
		return json.Marshal(d.Seconds())
	case l.IsUnlimited():
		return unlimitedJSON, nil
	}
	return []byte("null"), nil
}

// UnmarshalJSON reads what [Limit.MarshalJSON] wrote. Seconds may be too many for a
// limit, which is unlimited then, but not below 0.
func (l *Limit) UnmarshalJSON(text []byte) error {
	switch {
	case bytes.Equal(text, []byte("null")):
		*l = Limit{}
		return nil
	case bytes.Equal(text, unlimitedJSON):
		*l = Unlimited()
		return nil
	}
	var s float64
	if err := json.Unmarshal(text, &s); err != nil || !(s >= 0) {
		return fmt.Errorf(`a time limit of %.40s, want seconds, "unlimited" or null`, text)
	}
	*l = LimitOfSeconds(s)
	return nil
}
