package slurm

import (
	"errors"
	"slices"
	"strconv"
)

// Errors that callers tell apart with errors.Is.
var (
	// ErrNotFound means Slurm does not know the job or node.
	ErrNotFound = errors.New("not known to slurm")
	// ErrAmbiguous means that free text could have forged a field, so that the record is not used.
	ErrAmbiguous = errors.New("free text makes the record ambiguous")
	// ErrNoPowerSaving means that Slurm has no power saving configured.
	ErrNoPowerSaving = errors.New("slurm has no power saving configured")
	// ErrNotPending means that the lever exists for pending jobs only.
	ErrNotPending = errors.New("job is not pending")
	// ErrInvalid means an argument was refused before it reached Slurm.
	ErrInvalid = errors.New("invalid argument")
	// ErrUnreachable means slurmctld or slurmdbd did not answer.
	ErrUnreachable = errors.New("slurm does not answer")
	// ErrNoAccounting means that the cluster keeps no accounting.
	ErrNoAccounting = errors.New("slurm keeps no accounting")
	// ErrOutputTooLong means that a command printed more than the bound.
	ErrOutputTooLong = errors.New("output too long")
)

// ParseError names the place in Slurm's output that could not be read.
type ParseError struct {
	Source string // what was read, such as "squeue --json"
	Line   int    // 1-based
	Column int    // 1-based byte; 0 when the whole line is meant
	Msg    string // what was found and what was expected
	Err    error  // the cause, or nil
}

// Error gives source:line:column: message.
func (e *ParseError) Error() string {
	at := e.Source + ":" + strconv.Itoa(e.Line)
	if e.Column > 0 {
		at += ":" + strconv.Itoa(e.Column)
	}
	if e.Err != nil {
		return at + ": " + e.Msg + ": " + e.Err.Error()
	}
	return at + ": " + e.Msg
}

// Unwrap gives the cause.
func (e *ParseError) Unwrap() error { return e.Err }

// RejectedLine is a piece of output that was left out because it could not be trusted.
type RejectedLine struct {
	Line   int    // 1-based first line
	Reason string // why
}

// Unread counts the records of one of Slurm's lists that could not be read. They are passed over, and the
// others count.
type Unread struct {
	Records int
	// Names are the job numbers or nodes' names of those records that said theirs.
	Names  []string
	Reason string // of the first one, with its place
}

// maxUnreadNames bounds the names that are kept; records beyond that are without a name.
const maxUnreadNames = 1000

func (u *Unread) add(name, reason string) {
	if u.Records++; u.Records == 1 {
		u.Reason = reason
	}
	if name != "" && len(u.Names) < maxUnreadNames {
		u.Names = append(u.Names, name)
	}
}

// IsNameless reports whether a record didn't say of which job or node it is: then none may be
// concluded to be gone from a list that doesn't name it.
func (u *Unread) IsNameless() bool { return u.Records > len(u.Names) }

// MayList reports whether a record that could not be read may be of the job or node with that name.
func (u *Unread) MayList(name string) bool { return u.IsNameless() || slices.Contains(u.Names, name) }

// unusableError marks a record that was read to its end and can't be used.
type unusableError struct{ error }

// Unwrap gives the cause.
func (e unusableError) Unwrap() error { return e.error }
