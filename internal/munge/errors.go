package munge

import (
	"errors"
	"fmt"
	"time"
)

// What can be wrong with a credential, or in the way of asking.
var (
	// ErrUnavailable tells that munged can't be asked.
	ErrUnavailable = errors.New("munged doesn't answer")
	// ErrExpired tells of a credential older than it may become.
	ErrExpired = errors.New("the credential has expired")
	// ErrRewound tells of a credential made in the future.
	ErrRewound = errors.New("the credential comes from the future")
	// ErrReplayed tells of a credential that was used already.
	ErrReplayed = errors.New("the credential was used before")
	// ErrInvalid tells of something that is no credential.
	ErrInvalid = errors.New("this is no credential")
	// ErrKey tells of a credential that fails its authentication code.
	ErrKey = errors.New("the credential was made with another munge key, or altered")
	// ErrNotForUs tells of a credential that only another user may decode.
	ErrNotForUs = errors.New("the credential is for another user")
	// ErrBinding tells of a credential that vouches for something else.
	ErrBinding = errors.New("the credential vouches for something else")
	// ErrForbidden tells of a user who may not do this.
	ErrForbidden = errors.New("not allowed")
	// ErrUnauthentic tells of an answer that nobody trusted vouches for.
	ErrUnauthentic = errors.New("the answer isn't authentic")
	// ErrTooMany tells of somebody who sends more requests than are remembered.
	ErrTooMany = errors.New("too many requests within a minute")
	// ErrTooLong tells of a message or payload beyond its bound.
	ErrTooLong = errors.New("too long")
)

// isStale tells of a credential that is authentic and of no use any more.
func isStale(err error) bool {
	return errors.Is(err, ErrExpired) || errors.Is(err, ErrRewound) || errors.Is(err, ErrReplayed)
}

// hintClocks is what to do about clocks that differ.
const hintClocks = "compare the machines' clocks: chronyc tracking"

// TooOldError is the [ErrExpired] of a credential of an age.
func TooOldError(age, limit time.Duration) error {
	return fmt.Errorf("%w: it is %d s old, at most %d s are allowed; it took that long, or the clock where "+
		"it was made is behind (%s)",
		ErrExpired, roundedSeconds(age), roundedSeconds(limit), hintClocks)
}

// FromFutureError is the [ErrRewound] of a credential: it says how far ahead it is.
func FromFutureError(age time.Duration) error {
	return fmt.Errorf("%w: the clock where it was made is %d s ahead (%s)", ErrRewound,
		roundedSeconds(-age), hintClocks)
}

func roundedSeconds(d time.Duration) int64 { return int64(d / time.Second) }
