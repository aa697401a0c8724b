package slurm

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/live"
)

// Numbers that Slurm uses for "no value" and "infinite".
const (
	NoVal    = 0xfffffffe
	Infinite = 0xffffffff
	NoVal64  = 0xfffffffffffffffe
)

// maxDays keeps a duration within time.Duration.
const maxDays = 100_000

// ParseLimit reads Slurm's time limits: "minutes", "minutes:seconds",
// "hours:minutes:seconds", "days-hours[:minutes[:seconds]]", UNLIMITED, and
// the words for none stated (Partition_Limit, NOT_SET, INVALID, N/A). No job runs under a
// limit of 0: that is none stated, too.
func ParseLimit(text string) (live.Limit, error) {
	text = strings.TrimSpace(text)
	switch strings.ToUpper(text) {
	case "UNLIMITED", "INFINITE":
		return live.Unlimited(), nil
	case "", "PARTITION_LIMIT", "NOT_SET", "INVALID", "N/A", "NONE", "(NULL)":
		return live.Limit{}, nil
	}
	d, err := ParseDuration(text)
	if err != nil || d == 0 {
		return live.Limit{}, err
	}
	return live.LimitOf(d), nil
}

// ParseDuration reads a Slurm time such as "2-03:04:05"; a bare number counts minutes.
func ParseDuration(text string) (time.Duration, error) {
	days, clock, hasDays := strings.Cut(text, "-")
	if !hasDays {
		days, clock = "0", text
	}
	parts := strings.Split(clock, ":")
	var unit []time.Duration
	switch {
	case len(parts) > 3:
		return 0, fmt.Errorf("%q is not a slurm time: want days-hours:minutes:seconds", text)
	case hasDays || len(parts) == 3:
		unit = []time.Duration{time.Hour, time.Minute, time.Second}
	default:
		unit = []time.Duration{time.Minute, time.Second}
	}
	n, err := parseSmallNumber(days)
	if err != nil || n > maxDays {
		return 0, fmt.Errorf("%q is not a slurm time: bad days", text)
	}
	total := time.Duration(n) * 24 * time.Hour
	for i, p := range parts {
		n, err := parseSmallNumber(p)
		if err != nil || n > maxDays*1440 || total > maxDays*24*time.Hour {
			return 0, fmt.Errorf("%q is not a slurm time: bad number %q", text, p)
		}
		total += time.Duration(n) * unit[i]
	}
	return total, nil
}

// FormatLimit writes a duration for scontrol as days-hours:minutes:seconds, rounded up to
// a minute. One below 0 is written as 0.
func FormatLimit(d time.Duration) string {
	m := int64(max(0, d) / time.Minute)
	if d > 0 && d%time.Minute != 0 {
		m++
	}
	return fmt.Sprintf("%d-%02d:%02d:00", m/1440, m/60%24, m%60)
}

// LimitAdvice is a time limit that would do, for the user to take or leave.
type LimitAdvice struct {
	Limit time.Duration // whole minutes
	Text  string        // one sentence for the user
}

// AdviseLimit says which shorter limit would hold a job whose run is expected to
// last at most upper, with margin on top (0.25 is a quarter more). There is none
// when the job's own limit is unknown or already within twice of that: only
// the user changes a limit, and only a large difference is worth the word.
func AdviseLimit(asked live.Limit, upper time.Duration, margin float64) (LimitAdvice, bool) {
	if !asked.IsSet() || upper <= 0 || !(margin >= 0 && margin <= 10) {
		return LimitAdvice{}, false
	}
	minutes := math.Ceil(upper.Minutes() * (1 + margin))
	if minutes < 1 || minutes > maxDays*1440 {
		return LimitAdvice{}, false
	}
	limit := time.Duration(minutes) * time.Minute
	if d, ok := asked.Duration(); ok && d < 2*limit {
		return LimitAdvice{}, false
	}
	return LimitAdvice{
		Limit: limit,
		Text: fmt.Sprintf("--time=%s would probably do, and may start sooner: by its last runs it takes "+
			"hardly more than %s", FormatLimit(limit), FormatLimit(upper)),
	}, true
}

// limitFromMinutes reads a limit as JSON and sacct's TimelimitRaw state it; one of 0 is none stated.
func limitFromMinutes(n jsonNumber) live.Limit {
	switch {
	case n.infinite:
		return live.Unlimited()
	case !n.set:
		return live.Limit{}
	}
	return LimitOfMinutes(n.value)
}

// LimitOfMinutes returns a limit that Slurm states as minutes, [NoVal] or [Infinite]. One of 0, or of more
// than a limit can be, is none stated.
func LimitOfMinutes(minutes int64) live.Limit {
	switch {
	case minutes == Infinite:
		return live.Unlimited()
	case minutes == NoVal || minutes <= 0 || minutes > maxDays*1440:
		return live.Limit{}
	}
	return live.LimitOf(time.Duration(minutes) * time.Minute)
}

// maxUnix is the year 9999.
const maxUnix = 253402300799

// TimeFromUnix returns a point in time that Slurm states in seconds; the zero time where it states none.
func TimeFromUnix(seconds int64) time.Time {
	if seconds <= 0 || seconds == NoVal || seconds == Infinite || seconds > maxUnix {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

// ParseTime reads a point in time as Slurm prints it: seconds since 1970
// (SLURM_TIME_FORMAT=%s) or 2026-11-21T08:55:23 in the zone given. The words
// for none give the zero time.
func ParseTime(text string, zone *time.Location) (time.Time, error) {
	text = strings.TrimSpace(text)
	if isUnset(text) {
		return time.Time{}, nil
	}
	if len(text) <= 12 && strings.IndexFunc(text, isNotDigit) < 0 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return time.Time{}, fmt.Errorf("read time: %w", err)
		}
		return TimeFromUnix(n), nil
	}
	if zone == nil {
		return time.Time{}, fmt.Errorf("read time %q without a zone: %w", Printable(text, 40), ErrInvalid)
	}
	if t, ok := parsePlainTime(text, zone); ok {
		return t, nil
	}
	t, err := time.ParseInLocation("2006-01-02T15:04:05", text, zone)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is not a time as slurm prints it", Printable(text, 40))
	}
	return t, nil
}

// parsePlainTime reads the usual form of a time, several times as fast as package
// time; it leaves what may be wrong to that.
func parsePlainTime(text string, zone *time.Location) (time.Time, bool) {
	const form = "0000-00-00T00:00:00"
	if len(text) != len(form) {
		return time.Time{}, false
	}
	for i := range len(form) {
		if c := text[i]; form[i] == '0' && (c < '0' || c > '9') || form[i] != '0' && c != form[i] {
			return time.Time{}, false
		}
	}
	two := func(at int) int { return int(text[at]-'0')*10 + int(text[at+1]-'0') }
	year, month, day, hour, minute, second := two(0)*100+two(2), two(5), two(8), two(11), two(14), two(17)
	const everyMonth = 28 // has so many days
	if month < 1 || month > 12 || day < 1 || day > everyMonth || hour > 23 || minute > 59 || second > 59 {
		return time.Time{}, false
	}
	return time.Date(year, time.Month(month), day, hour, minute, second, 0, zone), true
}
