package spool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/epplan/epplan/statedir"
)

// DeliveryReport says what a delivery came to.
type DeliveryReport struct {
	Delivered int
	Aside     []Aside // what was moved aside
	Newer     []Aside // what a newer epd wrote: it stays in the spool, for that one
}

// Aside is an entry that wasn't offered, or was refused for good, and why.
type Aside struct {
	ID     string
	Reason error
}

// Deliver hands the entries to send, oldest first, and removes each after send
// returns nil: that is the acknowledgement. It stops at the first error of
// send, except that an entry refused with ErrRejected is moved aside, as is one
// that is damaged, and that one for which it is too early, ErrLater, stays and
// holds up no other, nor does one of a newer epd, or one that can't be read. Entries that are added
// meanwhile wait for the next delivery.
func (s *Spool) Deliver(
	ctx context.Context, send func(ctx context.Context, id string, body []byte) error,
) (DeliveryReport, error) {
	s.delivering.Lock()
	defer s.delivering.Unlock()
	s.mu.Lock()
	err := s.load()
	waiting := slices.Clone(s.entries)
	s.mu.Unlock()
	var report DeliveryReport
	if err != nil {
		return report, err
	}
	var unread error // the first
	for _, e := range waiting {
		if err := ctx.Err(); err != nil {
			return report, err
		}
		err := s.deliverEntry(ctx, e, send, &report)
		if err != nil {
			err = fmt.Errorf("deliver spool entry %s: %w", e.id, err)
		}
		switch {
		case errors.Is(err, errUnread):
			unread = cmp.Or(unread, err)
		case err != nil:
			return report, err
		}
	}
	return report, unread
}

// errUnread tells that the disk doesn't let an entry be read now.
var errUnread = errors.New("it can't be read")

// deliverEntry hands one entry over.
func (s *Spool) deliverEntry(
	ctx context.Context, e entry, send func(context.Context, string, []byte) error, report *DeliveryReport,
) error {
	body, err := s.read(e)
	if errors.Is(err, os.ErrNotExist) { // somebody removed the file: there is nothing to move
		report.Aside = append(report.Aside, Aside{
			ID: e.id, Reason: fmt.Errorf("%w: its file is gone", errDamaged),
		})
		return s.remove(e)
	}
	switch {
	case err == nil:
		err = send(ctx, e.id, body)
	case errors.Is(err, statedir.ErrNewer):
		report.Newer = append(report.Newer, Aside{ID: e.id, Reason: err})
		return nil
	case !errors.Is(err, errDamaged):
		return fmt.Errorf("%w: %w", errUnread, err)
	}
	switch {
	case err == nil:
		report.Delivered++
		return s.remove(e)
	case errors.Is(err, ErrLater):
		return nil
	case errors.Is(err, errDamaged), errors.Is(err, ErrRejected):
		report.Aside = append(report.Aside, Aside{ID: e.id, Reason: err})
		return s.setAside(e)
	default:
		return err
	}
}
