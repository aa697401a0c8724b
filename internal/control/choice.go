package control

import (
	"context"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/slurm"
)

// The notes of versions that administrators chose. What comes behind the reason,
// as in "pinned: too slow [by alice, 2026-05-04T09:00:00Z]", is for [chosenIn] to
// read back; earlier releases take it for a part of the reason.
const (
	pinnedNote = "pinned: "
	freedNote  = "fits may replace it again"
)

// byWhom is the end of such a note.
var byWhom = regexp.MustCompile(`^(?s)(.*) \[by ([^\[\]]*), ([^\[\], ]+)\]$`)

// noted is a choice as the note of a version keeps it.
func noted(note string, c *epdapi.Chosen) string {
	return note + " [by " + c.By + ", " + c.At.UTC().Format(time.RFC3339) + "]"
}

// chosenIn takes apart what a note keeps: the note without who left it and when,
// and whether an administrator pinned the version by it. Notes of earlier releases
// don't say who.
func chosenIn(note string) (text string, c epdapi.Chosen, pinned bool) {
	text = note
	if parts := byWhom.FindStringSubmatch(note); parts != nil {
		if at, err := time.Parse(time.RFC3339, parts[3]); err == nil {
			text, c.By, c.At = parts[1], parts[2], at
		}
	}
	why, pinned := strings.CutPrefix(text, pinnedNote)
	if pinned {
		c.Why = why
	}
	return text, c, pinned
}

// choiceOf is a choice that the caller of a context makes now.
func (c *Controller) choiceOf(ctx context.Context, why string) epdapi.Chosen {
	by := strings.NewReplacer("[", "(", "]", ")").Replace(slurm.Printable(c.nameOf(ctx), maxModel))
	return epdapi.Chosen{By: by, At: c.options.Clock().UTC().Truncate(time.Second), Why: why}
}

// nameOf is who asks, for those who look later: a user's name, or uid; a token of
// the pages as "alice (token)".
func (c *Controller) nameOf(ctx context.Context) string {
	who, known := ctx.Value(callerKey{}).(Caller)
	switch {
	case !known:
		return "epd"
	case who.UID == math.MaxUint32:
		return who.Name + " (token)"
	case who.Name != "":
		return who.Name
	}
	if c.options.UserName != nil {
		if name := c.options.UserName(who.UID); name != "" {
			return name
		}
	}
	return "uid " + strconv.FormatUint(uint64(who.UID), 10)
}
