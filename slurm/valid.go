package slurm

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// ValidNode accepts one node's name: letters, digits, dot, dash, underscore; at
// most 64 bytes; no list, no option.
func ValidNode(name string) error {
	if name == "" || len(name) > 64 || strings.IndexFunc(name, isBadHostRune) >= 0 || name[0] == '-' ||
		name[0] == '.' {
		return fmt.Errorf("node name %q: %w", Printable(name, 80), ErrInvalid)
	}
	return nil
}

// ValidFeature accepts one feature's name.
func ValidFeature(name string) error {
	bad := func(r rune) bool { return isBadHostRune(r) && r != ':' && r != '/' }
	if name == "" || len(name) > 64 || strings.IndexFunc(name, bad) >= 0 || name[0] == '-' {
		return fmt.Errorf("feature %q: %w", Printable(name, 80), ErrInvalid)
	}
	return nil
}

// maxComment bounds what is written to AdminComment.
const maxComment = 1024

// validComment accepts text that Slurm gives back as it was.
func validComment(text string) error {
	if len(text) > maxComment || strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
		return fmt.Errorf("comment of %d bytes: want UTF-8 of at most %d: %w", len(text),
			maxComment, ErrInvalid)
	}
	return nil
}

// isReserved reports whether Slurm takes the number for no job, or for all jobs.
func (id JobID) isReserved() bool { return id == NoVal || id == Infinite }

// validJob accepts a job that Slurm may be asked about.
func validJob(id JobID) error {
	if id == 0 || id.isReserved() {
		return fmt.Errorf("job id %d: %w", id, ErrInvalid)
	}
	return nil
}
