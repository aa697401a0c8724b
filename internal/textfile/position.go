package textfile

import "strconv"

// Position is a place in a file. Lines and columns count from 1, columns in
// bytes; 0 is not known. The zero value is a job that was not read from a file.
type Position struct {
	File         string
	Line, Column int
}

// String is file:line:column, or as much of it as is known, safe to print on a terminal.
func (p Position) String() string {
	switch {
	case p.Line == 0:
		return Printable(p.File)
	case p.Column == 0:
		return Printable(p.File) + ":" + strconv.Itoa(p.Line)
	}
	return Printable(p.File) + ":" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Column)
}

// SyntaxError says where a file is wrong and what was expected there.
type SyntaxError struct {
	Pos  Position
	Msg  string
	Want string // may be empty
}

// Error is "file:line:column: message, want …".
func (e *SyntaxError) Error() string {
	msg := e.Pos.String() + ": " + e.Msg
	if e.Want == "" {
		return msg
	}
	return msg + ", want " + e.Want
}
