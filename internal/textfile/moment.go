package textfile

import (
	"strings"
	"time"
)

// Moment reads an ISO 8601 date with or without a time of day, fractions of its seconds and a
// zone: 2026-03-31, 2026-03-31 08:00, 2026-03-31T08:00:00.5+02:00. Days and months may be set
// apart by slashes, as nvidia-smi writes them. Without a zone it is in UTC, and zoned is false.
func Moment(text string) (at time.Time, zoned, ok bool) {
	written := strings.ToUpper(strings.TrimSpace(text))
	const date = len("2026-03-31")
	if len(written) > date {
		if rest := strings.TrimLeft(written[date:], " "); rest[0] != 'T' {
			written = written[:date] + "T" + rest
		}
		written = strings.ReplaceAll(written, " ", "") // before the zone
	}
	written = strings.Replace(written, "/", "-", len("//"))
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly} {
		if at, err := time.Parse(layout, written); err == nil {
			return at, false, true
		}
		for _, zone := range []string{"Z07:00", "Z0700", "Z07"} {
			if at, err := time.Parse(layout+zone, written); err == nil && layout != time.DateOnly {
				return at, true, true
			}
		}
	}
	return time.Time{}, false, false
}
