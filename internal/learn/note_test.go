package learn

import (
	"testing"

	"github.com/epplan/epplan/internal/epdapi"
)

// Earlier releases kept the reason alone.
func TestChoicesOfEarlierReleasesAreOfNobodyInParticular(t *testing.T) {
	for note, want := range map[string]struct {
		text, why string
		pinned    bool
	}{
		"pinned: too slow": {"pinned: too slow", "too slow", true}, "pinned: ": {"pinned: ", "", true},
		"":                              {"", "", false},
		"pinned: x [by ada]":            {"pinned: x [by ada]", "x [by ada]", true},
		"pinned: x [by ada, yesterday]": {"pinned: x [by ada, yesterday]", "x [by ada, yesterday]", true},
		"model version 2 missed":        {"model version 2 missed", "", false},
	} {
		if text, c, pinned := parseChoiceNote(note); text != want.text || pinned != want.pinned ||
			c != (epdapi.Chosen{Why: want.why}) {
			t.Errorf("%q: %q, %+v, %v", note, text, c, pinned)
		}
	}
}
