package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/spelling"
)

// UnknownError is a name that doesn't exist, with those that do.
type UnknownError struct {
	Kind    string   // what the name is of: "GPU model", "workload"
	Name    string   // the unknown one
	Nearest string   // the one that was probably meant, or ""
	Known   []string // all that exist
	// UnguessedGPU has the message name the nearest GPU models without suggesting one: boards with
	// like names differ.
	UnguessedGPU bool
}

// Error names the nearest name, or else the first few known ones.
func (e *UnknownError) Error() string {
	if e.UnguessedGPU {
		const near = 4
		names := strings.Join(e.Known[:min(len(e.Known), near)], ", ")
		if more := len(e.Known) - near; more > 0 {
			names += fmt.Sprintf(" or %d more", more)
		}
		return fmt.Sprintf("unknown %s %s, want one of %s", e.Kind, quoteName(e.Name), names)
	}
	return fmt.Sprintf("unknown %s %s, %s", e.Kind, quoteName(e.Name),
		suggestNames(e.Nearest, e.Known, quoteName))
}

func newUnknownError(kind, name string, known []string) *UnknownError {
	return &UnknownError{Kind: kind, Name: name, Nearest: spelling.Nearest(name, known), Known: known}
}

// maxSuggested is how many names a message lists when none is near.
const maxSuggested = 12

func suggestNames(near string, known []string, show func(string) string) string {
	switch {
	case near != "":
		return "did you mean " + show(near) + "?"
	case len(known) == 0:
		return "there are none"
	}
	names := make([]string, 0, maxSuggested+1)
	for _, name := range known[:min(len(known), maxSuggested)] {
		names = append(names, show(name))
	}
	if more := len(known) - len(names); more > 0 {
		names = append(names, strconv.Itoa(more)+" more")
	}
	return "want one of " + strings.Join(names, ", ")
}

// quoteName is s in quotes for a message: safe to print, and cut when long.
func quoteName(s string) string {
	const longest = 60
	if runes := []rune(s); len(runes) > longest {
		return strconv.Quote(string(runes[:longest])) + "…"
	}
	return strconv.Quote(s)
}

// sortedUnique returns the distinct names, ascending.
func sortedUnique(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
