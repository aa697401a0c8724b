package slurm

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Wishes is what a user asked of the planner in --comment: epplan:off,
// epplan:fixed=1200,5001, epplan:deadline=…, epplan:slowdown=1.05, epplan:nocode. They bind that user's
// own job and nothing else.
type Wishes struct {
	Off       bool
	NoCode    bool // source code isn't to be looked at
	CoreMHz   int  // 0: not fixed
	MemoryMHz int  // 0: the default
	Deadline  time.Time
	Slowdown  float64  // times as long as at default clocks that the job may run; 0: not stated
	Warnings  []string // words that begin with epplan: and mean nothing
}

// HasFixedClocks says whether the user chose the clocks.
func (w *Wishes) HasFixedClocks() bool { return w.CoreMHz > 0 }

const (
	maxClockMHz = 20_000
	maxDeadline = 366 * 24 * time.Hour
	maxSlowdown = 10
)

// ParseWishes reads a job's comment; times of day and durations count from now,
// in now's zone. Words are parted by spaces and semicolons, in any case. The first of two
// wishes of one kind counts. Off outdoes the others. What cannot be understood
// is a warning and changes nothing.
func ParseWishes(comment string, now time.Time) Wishes {
	var w Wishes
	comment = comment[:min(len(comment), MaxText)]
	for _, word := range strings.FieldsFunc(comment,
		func(r rune) bool { return r == ';' || unicode.IsSpace(r) }) {
		if len(word) < len(tokenPrefix) || !strings.EqualFold(word[:len(tokenPrefix)], tokenPrefix) {
			continue
		}
		if err := w.add(word[len(tokenPrefix):], now); err != nil && len(w.Warnings) < maxWarnings {
			w.Warnings = append(w.Warnings, fmt.Sprintf("%s: %v", Printable(word, 60), err))
		}
	}
	if w.Off {
		w.CoreMHz, w.MemoryMHz, w.Deadline, w.Slowdown = 0, 0, time.Time{}, 0
	}
	return w
}

var errDuplicateWish = errors.New("stands there twice; the first counts")

func (w *Wishes) add(wish string, now time.Time) error {
	key, value, _ := strings.Cut(wish, "=")
	key = strings.ToLower(key)
	switch {
	case strings.EqualFold(wish, "off"):
		w.Off = true
		return nil
	case strings.EqualFold(wish, "nocode"):
		w.NoCode = true
		return nil
	case key == "fixed" && w.HasFixedClocks(), key == "deadline" && !w.Deadline.IsZero(),
		key == "slowdown" && w.Slowdown > 0:
		return errDuplicateWish
	case key == "fixed":
		return w.setFixed(value)
	case key == "slowdown":
		x, err := strconv.ParseFloat(value, 64)
		if err != nil || !(x >= 1 && x <= maxSlowdown) {
			return fmt.Errorf("want a number from 1 to %d: times as long as at default clocks", maxSlowdown)
		}
		w.Slowdown = x
		return nil
	case key == "deadline":
		at, err := parseDeadline(value, now)
		if err != nil {
			return err
		}
		w.Deadline = at
		return nil
	}
	return errors.New("want off, nocode, fixed=CORE,MEMORY, deadline=TIME or slowdown=FACTOR")
}

func (w *Wishes) setFixed(value string) error {
	core, memory, both := strings.Cut(value, ",")
	c, err := smallNumber(core)
	if err != nil || c < 1 || c > maxClockMHz {
		return fmt.Errorf("core clock: want 1 to %d MHz", maxClockMHz)
	}
	m := 0
	if both {
		if m, err = smallNumber(memory); err != nil || m < 1 || m > maxClockMHz {
			return fmt.Errorf("memory clock: want 1 to %d MHz", maxClockMHz)
		}
	}
	w.CoreMHz, w.MemoryMHz = c, m
	return nil
}

// parseDeadline reads RFC 3339, +2h30m, +3d, and 18:00 (the next one).
func parseDeadline(value string, now time.Time) (time.Time, error) {
	at, err := deadlineAt(value, now)
	switch {
	case err != nil:
		return time.Time{}, err
	case !at.After(now):
		return time.Time{}, errors.New("deadline is over already")
	case at.Sub(now) > maxDeadline:
		return time.Time{}, errors.New("deadline is more than a year away")
	}
	return at, nil
}

func deadlineAt(value string, now time.Time) (time.Time, error) {
	if len(value) > 40 {
		return time.Time{}, errors.New("want RFC 3339, +2h or 18:00")
	}
	if after, ok := strings.CutPrefix(value, "+"); ok {
		if days, ok := strings.CutSuffix(after, "d"); ok {
			n, err := smallNumber(days)
			if err != nil || n > 366 {
				return time.Time{}, errors.New("want +1d to +366d")
			}
			return now.Add(time.Duration(n) * 24 * time.Hour), nil
		}
		d, err := time.ParseDuration(after)
		if err != nil || d <= 0 || strings.HasPrefix(after, "+") {
			return time.Time{}, errors.New("want a duration such as +2h or +90m")
		}
		return now.Add(min(d, 2*maxDeadline)), nil
	}
	if clock, err := time.Parse("15:04", value); err == nil {
		at := time.Date(now.Year(), now.Month(), now.Day(), clock.Hour(), clock.Minute(), 0, 0,
			now.Location())
		if !at.After(now) {
			at = time.Date(now.Year(), now.Month(), now.Day()+1, clock.Hour(), clock.Minute(), 0, 0,
				now.Location())
		}
		return at, nil
	}
	at, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return time.Time{}, errors.New("want RFC 3339, +2h or 18:00")
	}
	return at, nil
}
