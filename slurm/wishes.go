package slurm

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Wishes is what a user asked of the planner in --comment: epplan:off, epplan:fixed=1200,5001,
// epplan:deadline=…, epplan:slowdown=1.05, epplan:slack=4h, epplan:nocode. They bind that user's own job and
// nothing else.
type Wishes struct {
	Off       bool
	NoCode    bool // source code isn't to be looked at
	CoreMHz   int  // 0: not fixed
	MemoryMHz int  // 0: the default
	CapW      int  // power limit of each GPU, W; 0: not fixed
	Deadline  time.Time
	Slowdown  float64 // times as long as at default clocks that the job may run; 0: not stated
	// Slack is how much later the job may begin than it could; of no meaning unless HasSlack.
	Slack    time.Duration
	HasSlack bool
	Warnings []string // words that begin with epplan: and mean nothing
}

// MaxText bounds one text of a user, in bytes.
const MaxText = 8 << 10

// MaxSlack is how much later a job may begin at most.
const MaxSlack = 7 * 24 * time.Hour

// HasFixedClocks says whether the user chose the clocks.
func (w *Wishes) HasFixedClocks() bool { return w.CoreMHz > 0 }

// IsFixed says whether the user chose the clocks or the power limit.
func (w *Wishes) IsFixed() bool { return w.HasFixedClocks() || w.CapW > 0 }

const (
	maxClockMHz = 20_000
	maxCapW     = 100_000
	maxDeadline = 366 * 24 * time.Hour
	maxSlowdown = 10
	maxWarnings = 16
)

// How wishes stand in a comment, in any case and with blanks where people put them.
var (
	// requestStart is epplan: or epplan= at the start of a word; without either it is a wish only before off.
	requestStart = regexp.MustCompile(`(?i)(?:^|[^\p{L}\p{N}_./-])epplan` +
		`(?:(?:[\s\p{Z}]*[:=：])+[\s\p{Z}]*|[\s\p{Z}_-]+(off)\b)`)
	requestName = regexp.MustCompile("(?i)epplan")
	// requestSeparator is what parts a wish from a further one: a comma, or anything before a word that is one.
	requestSeparator = regexp.MustCompile(
		`(?i)^(?:([\s\p{Z};,]+)(?:off|nocode|fixed|cap|deadline|slowdown|slack)\b|(,)[^\s\p{Z};,])`)
	// requestEquals is a key with blanks around its equals sign.
	requestEquals = regexp.MustCompile(`(?i)^(fixed|cap|deadline|slowdown|slack)[\s\p{Z}]*=[\s\p{Z}]*`)
	// requestFixed is one whose numbers are parted by commas.
	requestFixed = regexp.MustCompile(`(?i)^fixed=[^\s;,]*(?:,[0-9]+)*(?:,$)?`)
	// requestOptOut are words that may be meant to opt out.
	requestOptOut = regexp.MustCompile(`(?i)^(off?f?|[o0]ff|no|none|never|false|0|stop|skip|ignore|exclude|` +
		`disabled?|opt.?out|hands.?off|aus)($|[^\p{L}\p{N}])`)
)

// WishText returns the part of a comment that has all its wishes: from before the first epplan on.
func WishText(comment string) string {
	comment = comment[:min(len(comment), MaxText)]
	at := requestName.FindStringIndex(comment)
	if at == nil {
		return ""
	}
	_, before := utf8.DecodeLastRuneInString(comment[:at[0]])
	return comment[at[0]-before:]
}

// ParseWishes reads a job's comment; times of day and durations count from now,
// in now's zone. Wishes stand behind epplan: and are parted by commas, semicolons and blanks, in any case.
// The first of two wishes of one kind counts. Off outdoes the others, and what may be meant to be off is.
// What else cannot be understood is a warning and changes nothing.
func ParseWishes(comment string, now time.Time) Wishes {
	var w Wishes
	comment = comment[:min(len(comment), MaxText)]
	for {
		at := requestStart.FindStringSubmatchIndex(comment)
		if at == nil {
			break
		}
		rest := comment[at[1]:]
		if at[2] >= 0 { // epplan off
			rest = comment[at[2]:]
		}
		comment = w.addList(rest, now)
	}
	if w.Off {
		if w.IsFixed() || !w.Deadline.IsZero() || w.Slowdown > 0 || w.HasSlack {
			w.warn("off", errors.New("its other wishes don't count: hands off"))
		}
		w.CoreMHz, w.MemoryMHz, w.CapW, w.Deadline, w.Slowdown = 0, 0, 0, time.Time{}, 0
		w.Slack, w.HasSlack = 0, false
	}
	return w
}

// addList adds the wishes with which a text begins, and returns what follows.
func (w *Wishes) addList(text string, now time.Time) (rest string) {
	for {
		text = requestEquals.ReplaceAllString(text, "$1=")
		end := strings.IndexFunc(text, func(r rune) bool { return r == ';' || r == ',' || unicode.IsSpace(r) })
		if end < 0 {
			end = len(text)
		}
		if fixed := requestFixed.FindString(text); fixed != "" {
			end = len(fixed)
		}
		wish := strings.Trim(text[:end], "\"'`()[]{}<>.!?")
		if err := w.add(wish, now); err != nil {
			w.warn(wish, err)
		}
		text = text[end:]
		more := requestSeparator.FindStringSubmatchIndex(text)
		if more == nil {
			return text
		}
		text = text[max(more[3], more[5]):]
	}
}

func (w *Wishes) warn(wish string, err error) {
	if len(w.Warnings) < maxWarnings {
		w.Warnings = append(w.Warnings, fmt.Sprintf("%s%s: %v", tokenPrefix, Printable(wish, 60), err))
	}
}

var errDuplicateRequest = errors.New("stands there twice; the first counts")

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
	case key == "fixed" && w.HasFixedClocks(), key == "cap" && w.CapW > 0,
		key == "deadline" && !w.Deadline.IsZero(), key == "slowdown" && w.Slowdown > 0,
		key == "slack" && w.HasSlack:
		return errDuplicateRequest
	case key == "fixed":
		return w.setFixed(value)
	case key == "cap":
		watts, err := parseSmallNumber(strings.TrimSuffix(strings.ToUpper(value), "W"))
		if err != nil || watts < 1 || watts > maxCapW {
			return fmt.Errorf("want a power limit of each GPU, 1 to %d W", maxCapW)
		}
		w.CapW = watts
		return nil
	case key == "slowdown":
		x, err := strconv.ParseFloat(value, 64)
		if err != nil || !(x >= 1 && x <= maxSlowdown) {
			return fmt.Errorf("want a number from 1 to %d: times as long as at default clocks", maxSlowdown)
		}
		w.Slowdown = x
		return nil
	case key == "slack":
		slack, err := parseSlack(value)
		if err != nil {
			return err
		}
		w.Slack, w.HasSlack = slack, true
		return nil
	case key == "deadline":
		at, err := parseDeadline(value, now)
		if err != nil {
			return err
		}
		w.Deadline = at
		return nil
	case requestOptOut.MatchString(wish):
		w.Off = true
		return errors.New("taken for off: hands off")
	}
	return errors.New("want off, nocode, fixed=CORE,MEMORY, cap=WATTS, deadline=TIME, slowdown=FACTOR or " +
		"slack=TIME")
}

func (w *Wishes) setFixed(value string) error {
	core, memory, both := strings.Cut(value, ",")
	c, err := parseSmallNumber(core)
	if err != nil || c < 1 || c > maxClockMHz {
		return fmt.Errorf("core clock: want 1 to %d MHz", maxClockMHz)
	}
	m := 0
	if both {
		if m, err = parseSmallNumber(memory); err != nil || m < 1 || m > maxClockMHz {
			return fmt.Errorf("memory clock: want 1 to %d MHz", maxClockMHz)
		}
	}
	w.CoreMHz, w.MemoryMHz = c, m
	return nil
}

// parseSlack reads 4h, 90m, 1d and 0.
func parseSlack(value string) (time.Duration, error) {
	if value == "0" {
		return 0, nil
	}
	at, err := TimeAt("+"+strings.TrimPrefix(value, "+"), time.Time{})
	if slack := at.Sub(time.Time{}); err == nil && slack <= MaxSlack {
		return slack, nil
	}
	return 0, errors.New("want how much later the job may begin, such as 4h or 90m, 7d at most")
}

// parseDeadline reads RFC 3339, +2h30m, +3d, and 18:00 (the next one).
func parseDeadline(value string, now time.Time) (time.Time, error) {
	at, err := TimeAt(value, now)
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

// TimeAt reads a time as users state one: RFC 3339, +2h or +1d from now, or 18:00, the next one in now's zone.
func TimeAt(value string, now time.Time) (time.Time, error) {
	if len(value) > 40 {
		return time.Time{}, errors.New("want RFC 3339, +2h or 18:00")
	}
	if after, ok := strings.CutPrefix(value, "+"); ok {
		if days, ok := strings.CutSuffix(after, "d"); ok {
			n, err := parseSmallNumber(days)
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
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00"} {
		if at, err := time.Parse(layout, value); err == nil {
			return at, nil
		}
	}
	return time.Time{}, errors.New("want RFC 3339, +2h or 18:00")
}
