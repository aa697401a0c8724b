package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/epplan/epplan/queue"
)

// KeyError is one fault of a TOML file.
type KeyError struct {
	Pos   queue.Position
	Msg   string
	cause error // that Msg tells, if there is one
}

// Unwrap returns the error that the message tells, or nil.
func (e *KeyError) Unwrap() error { return e.cause }

// Error is "file:line:column: message".
func (e *KeyError) Error() string { return e.Pos.String() + ": " + e.Msg }

// FileError is every fault of a TOML file, in the order of the file. It has at
// least one.
type FileError struct{ Faults []*KeyError }

// maxShown is how many faults the message of a [FileError] lists.
const maxShown = 10

// Error lists the faults, one on a line, the first first.
func (e *FileError) Error() string {
	shown := e.Faults[:min(len(e.Faults), maxShown)]
	lines := make([]string, 0, maxShown+1)
	for _, fault := range shown {
		lines = append(lines, fault.Error())
	}
	if more := len(e.Faults) - len(shown); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the faults.
func (e *FileError) Unwrap() []error {
	all := make([]error, len(e.Faults))
	for i, fault := range e.Faults {
		all[i] = fault
	}
	return all
}

// fileError sorts the faults; nil when there are none.
func fileError(faults []*KeyError) error {
	if len(faults) == 0 {
		return nil
	}
	slices.SortStableFunc(faults, func(a, b *KeyError) int {
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})
	return &FileError{Faults: faults}
}
