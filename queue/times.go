package queue

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/epplan/epplan/internal/textfile"
)

// Seconds.
const (
	minute = 60.0
	hour   = 60 * minute
	day    = 24 * hour
	week   = 7 * day
)

// timeColumns hold times. Those of pointColumns are moments, and may be dates.
var (
	timeColumns  = columnSet(0).with(colArrival).with(colDeadline).with(colLimit).with(colRuntime)
	pointColumns = columnSet(0).with(colArrival).with(colDeadline)
	endlessWords = columnSet(0).with(colDeadline).with(colLimit)
)

// dateForm is how a moment was written.
type dateForm uint8

const (
	plainSeconds    dateForm = iota // seconds on the batch's own clock
	dateWithoutZone                 // a date without a zone
	dateWithZone                    // a date with one
)

var (
	slurmTime = regexp.MustCompile(`^(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+(?:\.\d+)?))?$`)
	unitTime  = regexp.MustCompile(`^(?i)(?:\d+(?:\.\d+)?\s*[a-z]+\s*)+$`)
	unitPart  = regexp.MustCompile(`(\d+(?:\.\d+)?)\s*([a-zA-Z]+)`)
	isoTime   = regexp.MustCompile(
		`^P(?:(\d+(?:\.\d+)?)W)?(?:(\d+(?:\.\d+)?)D)?(?:T(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)S)?)?$`,
	)
	dateStart = regexp.MustCompile(`^\d{4}-\d\d?-\d\d?`)
)

// parseTime reads a time in seconds as people and Slurm write it: 5400, 01:30:00,
// 1-02:30:00, 90m, 1h30m, PT1H30M, a date where a moment is meant, UNLIMITED where
// there may be none. unit are the seconds of a number without one; 0: 1.
func parseTime(c column, text string, unit float64) (seconds float64, how dateForm, problem *FieldError) {
	if isBare(text) {
		value, problem := parseNumber(c, text)
		if math.IsNaN(unit) {
			return 0, plainSeconds, newFieldError(c, quoted(text)+" has no unit, and the column's name none for numbers",
				"a time such as 02:30:00, or the unit stated as "+nativeNames[c]+"[UNIT]: "+textfile.Time.Units())
		}
		return textfile.Scaled(text, value, unit), plainSeconds, problem
	}
	if endlessWords.has(c) && isEndless(text) {
		return math.Inf(1), plainSeconds, nil
	}
	if pointColumns.has(c) && dateStart.MatchString(text) {
		return parseDate(c, text)
	}
	seconds, problem = parseDuration(c, text)
	return seconds, plainSeconds, problem
}

// isBare reports whether a time is a number without a unit.
func isBare(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil || isHexadecimal(text) || errors.Is(err, strconv.ErrRange)
}

// isEndless reports whether a text says that there is no limit or deadline.
func isEndless(text string) bool {
	switch strings.ToLower(text) {
	case "unlimited", "infinite", "infinity", "partition_limit", "none", "never", "n/a":
		return true
	}
	return false
}

// parseDuration reads a length of time in any of its spellings.
func parseDuration(c column, text string) (float64, *FieldError) {
	if m := slurmTime.FindStringSubmatch(text); m != nil {
		return clockSeconds(c, text, m)
	}
	if m := isoTime.FindStringSubmatch(strings.ToUpper(text)); m != nil && text[len(text)-1] != 'T' &&
		len(text) > 1 {
		sum := 0.0
		for i, unit := range []float64{week, day, hour, minute, 1} {
			sum += unit * parseDigits(m[i+1])
		}
		return sum, nil
	}
	if unitTime.MatchString(text) {
		sum := 0.0
		for _, part := range unitPart.FindAllStringSubmatch(text, -1) {
			unit, known := textfile.Time.InUnit(part[2])
			if !known {
				return 0, newFieldError(c, quoted(text)+" has a unit that isn't known, "+quoted(part[2]),
					"one of s, m, h, d")
			}
			sum += unit * parseDigits(part[1])
		}
		return sum, nil
	}
	want := "seconds such as 12.5, 02:30:00, 1-02:30:00, 90m or PT2H30M"
	if pointColumns.has(c) {
		want += ", or a date such as 2026-03-31T08:00:00"
	}
	return 0, newFieldError(c, quoted(text)+" is not a time", want)
}

// clockSeconds returns those of [days-]hours:minutes:seconds. Days may stand without
// minutes or seconds, as Slurm allows; two numbers alone may be either.
func clockSeconds(c column, text string, m []string) (float64, *FieldError) {
	if m[1] == "" && m[4] == "" {
		return 0, newFieldError(c, quoted(text)+" may be hours and minutes or minutes and seconds",
			quoted(text+":00")+" or "+quoted("00:"+text))
	}
	hours, minutes, seconds := parseDigits(m[2]), parseDigits(m[3]), parseDigits(m[4])
	if m[1] != "" && hours >= 24 || minutes >= 60 || seconds >= 60 {
		return 0, newFieldError(c, quoted(text)+" is not a time",
			"up to 59 minutes and seconds, and with days up to 23 hours")
	}
	return day*parseDigits(m[1]) + hour*hours + minute*minutes + seconds, nil
}

// parseDigits returns a number of digits, 0 for none.
func parseDigits(text string) float64 {
	value, _ := strconv.ParseFloat(text, 64) // digits, as the patterns have it
	return value
}

// parseDate reads an ISO 8601 date with or without a time of day and a zone, as
// seconds since 1970. Without a zone every day has 24 hours.
func parseDate(c column, text string) (float64, dateForm, *FieldError) {
	if at, zoned, ok := textfile.Moment(text); ok && at.Year() >= 1970 {
		how := dateWithoutZone
		if zoned {
			how = dateWithZone
		}
		return float64(at.Unix()) + float64(at.Nanosecond())/1e9, how, nil
	}
	return 0, plainSeconds, newFieldError(c, quoted(text)+" is not a date",
		"one such as 2026-03-31T08:00:00, from 1970 on")
}

// parseMemory reads GiB, or the unit of the column's name, or an amount with a unit as
// Slurm writes it: 16G, 512M.
func parseMemory(text string, at *columnHeading) (float64, *FieldError) {
	number, unit := text, ""
	if i := strings.IndexFunc(text,
		func(r rune) bool { return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' }); i > 0 {
		number, unit = strings.TrimSpace(text[:i]), strings.ToUpper(text[i:])
	}
	gib := map[string]float64{"": 1, "K": 1.0 / (1 << 20), "M": 1.0 / (1 << 10), "G": 1, "T": 1 << 10}
	factor, known := gib[strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(unit, "N"), "B"), "I")]
	if value, err := strconv.ParseFloat(number, 64); err == nil && known && !isHexadecimal(number) {
		if unit == "" && at.loose && value != 0 {
			return 0, newFieldError(colMem, quoted(text)+" has no unit",
				quoted(text+"G")+" or "+quoted(text+"M"))
		}
		if unit == "" {
			return textfile.Scaled(number, value, at.unit), nil
		}
		return value * factor, nil
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil || errors.Is(err, strconv.ErrRange) ||
		isHexadecimal(text) {
		return parseNumber(colMem, text) // such as 1e3 or NaN
	}
	return 0, newFieldError(colMem, quoted(text)+" is not an amount of memory",
		"GiB such as 16, or 16G or 512M")
}
