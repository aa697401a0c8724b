package query

import (
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/slurm"
)

// ErrLongQuery tells of a path whose query is longer than anything that can be asked.
var ErrLongQuery = fmt.Errorf("%w: the query is too long", epdapi.ErrRequest)

// ParseNumber reads a parameter that may be missing. The error is [epdapi.ErrRequest].
func ParseNumber(text string, missing, most int64) (int64, error) {
	if text == "" {
		return missing, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("%w: %s, want a number from 0 to %d", epdapi.ErrRequest,
			slurm.Printable(text, 40), most)
	}
	return n, nil
}

// ParseLimit reads how long a page is to be. The error is [epdapi.ErrRequest].
func ParseLimit(text string) (int, error) {
	limit, err := ParseNumber(text, pageSize, maxPage)
	return int(max(1, limit)), err
}

// ParseTime reads a time of a query; the zero time where there is none. The error is
// [epdapi.ErrRequest].
func ParseTime(q url.Values, key string) (time.Time, error) {
	text := q.Get(key)
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: %s is %s, want a time such as 2026-01-31T00:00:00Z",
			epdapi.ErrRequest, key, slurm.Printable(text, 40))
	}
	return at, nil
}

// ParseBool reads true or false; what isn't there is false.
func ParseBool(q url.Values, key string) (bool, error) {
	switch text := q.Get(key); text {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, fmt.Errorf("%w: %s is %s, want true or false", epdapi.ErrRequest, key,
			slurm.Printable(text, 40))
	}
}
