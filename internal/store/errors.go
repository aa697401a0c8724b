package store

import (
	"errors"
	"fmt"
	"syscall"
)

// Errors of a store, wrapped with what was being done.
var (
	// ErrBusy tells that another process holds the database for longer than the
	// store waits. Trying again later helps.
	ErrBusy = errors.New("the database is locked by another process")
	// ErrCorrupt tells that the database is damaged. The store writes nothing
	// more; `epd db check` says what is wrong, and a backup helps.
	ErrCorrupt = errors.New("the database is damaged")
	// ErrFull tells that the disk is full, or can't be written.
	ErrFull = errors.New("the disk is full or can't be written")
	// ErrMoved tells that the database was removed or replaced while it was open, or
	// its log was. Nothing is written until it is back, or opened anew.
	ErrMoved = errors.New("the database was removed or replaced while it was open: restart epd")
	// ErrSchema tells that the database has a schema that this epd doesn't know.
	ErrSchema = errors.New("the database isn't of this epd")
	// ErrClosed tells that the store was closed.
	ErrClosed = errors.New("the store is closed")
	// ErrNotFound tells that there is no such record.
	ErrNotFound = errors.New("no such record")
)

// SQLite's primary result codes that callers are told apart.
const (
	codePerm     = 3
	codeBusy     = 5
	codeLocked   = 6
	codeReadOnly = 8
	codeIO       = 10
	codeCorrupt  = 11
	codeFull     = 13
	codeProtocol = 15
	codeNotDB    = 26
)

// typedError wraps an error of SQLite in the one that callers know.
func typedError(err error) error {
	if err == nil {
		return nil
	}
	for _, known := range []error{ErrBusy, ErrCorrupt, ErrFull, ErrMoved, ErrSchema, ErrClosed, ErrNotFound} {
		if errors.Is(err, known) {
			return err
		}
	}
	switch resultCode(err) {
	case codeBusy, codeLocked, codeProtocol:
		return fmt.Errorf("%w: %w", ErrBusy, err)
	case codeCorrupt, codeNotDB:
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	case codeFull, codeIO, codeReadOnly, codePerm:
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	for _, disk := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO} {
		if errors.Is(err, disk) {
			return fmt.Errorf("%w: %w", ErrFull, err)
		}
	}
	return err
}

// breaksBatch reports whether an error may have ended the whole transaction, and
// not just the statement that met it.
func breaksBatch(err error) bool {
	return errors.Is(err, ErrBusy) || errors.Is(err, ErrCorrupt) || errors.Is(err, ErrFull)
}
