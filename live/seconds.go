package live

import (
	"math"
	"time"
)

// ofSeconds is a time span to the nanosecond, no less than 0 and of a century at most.
func ofSeconds(s float64) time.Duration {
	const longest = 100 * 365 * 24 * 3600.0
	if !(s > 0) {
		return 0
	}
	return time.Duration(math.Round(min(s, longest) * float64(time.Second)))
}
