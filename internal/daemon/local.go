package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/epplan/epplan/internal/control"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
)

// LocalController is a controller in this process.
type LocalController struct{ *control.Controller }

var _ Controller = LocalController{}

// Record keeps an outcome.
func (l LocalController) Record(ctx context.Context, outcome []byte) error {
	var o record.Outcome
	if err := json.Unmarshal(outcome, &o); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	_, err := l.Controller.Record(ctx, &o)
	if errors.Is(err, record.ErrInvalid) {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return err
}

// totalsOf count what a controller did since its start.
func totalsOf(s *epdapi.ControllerStatus) *epdapi.Totals {
	return &epdapi.Totals{Decisions: s.Decisions, Outcomes: s.Outcomes, Models: int64(s.Models)}
}
