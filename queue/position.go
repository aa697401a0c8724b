package queue

import (
	"errors"
	"strconv"
)

// Position is a place in a file. Lines and columns count from 1, columns in
// bytes. The zero value is a job that was not read from a file.
type Position struct {
	File         string
	Line, Column int
}

// String is file:line:column, safe to print on a terminal.
func (p Position) String() string {
	if p.Line == 0 {
		return Printable(p.File)
	}
	return Printable(p.File) + ":" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Column)
}

// ErrEmpty says that a batch has no jobs.
var ErrEmpty = errors.New("batch has no jobs")

// SyntaxError says where a batch file is wrong and what was expected there.
type SyntaxError struct {
	Pos  Position
	Msg  string
	Want string // may be empty
}

// Error is "file:line:column: message, want …".
func (e *SyntaxError) Error() string {
	return e.Pos.String() + ": " + appendWant(e.Msg, e.Want)
}

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
