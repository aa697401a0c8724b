package queue

import (
	"errors"

	"github.com/epplan/epplan/internal/textfile"
)

// Position is a place in a file. The zero value is a job that was not read from a file.
type Position = textfile.Position

// SyntaxError says where a batch file is wrong and what was expected there.
type SyntaxError = textfile.SyntaxError

// Printable returns s with everything escaped that could act on a terminal
// instead of being shown by it.
func Printable(s string) string { return textfile.Printable(s) }

func quoted(s string) string { return textfile.Quoted(s) }

// ErrEmpty says that a batch has no jobs.
var ErrEmpty = errors.New("batch has no jobs")

// FieldError says which field of a job is wrong.
type FieldError struct {
	ID    string // the job
	Field string // the column's name, "" for the job as a whole
	Msg   string
	Want  string // may be empty

	col column
}

// Error is "job "id": field message, want …".
func (e *FieldError) Error() string {
	msg := e.Msg
	if e.Field != "" {
		msg = e.Field + " " + msg
	}
	return "job " + quoted(e.ID) + ": " + appendWant(msg, e.Want)
}

func appendWant(msg, want string) string {
	if want == "" {
		return msg
	}
	return msg + ", want " + want
}

func newFieldError(c column, msg, want string) *FieldError {
	return &FieldError{col: c, Msg: msg, Want: want}
}
