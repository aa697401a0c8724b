package learn

import (
	"regexp"
	"strings"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
)

// The notes of versions that administrators chose. What comes behind the reason,
// as in "pinned: too slow [by alice, 2026-05-04T09:00:00Z]", is for [parseChoiceNote] to
// read back.
const (
	pinnedNote = "pinned: "
	freedNote  = "fits may replace it again"
)

// byWhom is the end of such a note.
var byWhom = regexp.MustCompile(`^(?s)(.*) \[by ([^\[\]]*), ([^\[\], ]+)\]$`)

// choiceNote returns a choice as the note of a version keeps it.
func choiceNote(note string, c *epdapi.Chosen) string {
	return note + " [by " + c.By + ", " + c.At.UTC().Format(time.RFC3339) + "]"
}

// parseChoiceNote takes apart what a note keeps: the note without who left it and when,
// and whether an administrator pinned the version by it.
func parseChoiceNote(note string) (text string, c epdapi.Chosen, pinned bool) {
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
