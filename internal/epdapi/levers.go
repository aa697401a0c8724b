package epdapi

import (
	"context"

	"github.com/epplan/epplan/internal/steer"
	"github.com/epplan/epplan/live"
)

// Paths of levers; taking them back is for root and Slurm's user.
const (
	PathLevers     = "/v1/levers"
	PathLeversUndo = "/v1/levers/undo"
)

// Levers are what is steered in Slurm beside clocks, and advice.
type Levers struct {
	steer.Status

	// Plan is the plan in force of what waits; absent: there is none.
	Plan *live.Plan `json:"plan,omitempty"`
}

// UndoLeversAnswer says what became of levers that were to be taken back.
type UndoLeversAnswer struct {
	Undone  int    `json:"undone"`
	Failed  int    `json:"failed"`
	Waiting int    `json:"waiting"` // of jobs that run or are held: taken back later
	Error   string `json:"error,omitempty"`
}

// Levers asks what is steered.
func (c *Client) Levers(ctx context.Context) (*Levers, error) {
	return get[Levers](ctx, c, PathLevers, nil)
}

// UndoLevers takes back what was steered. Nothing is steered again before the
// configuration is another one.
func (c *Client) UndoLevers(ctx context.Context) (*UndoLeversAnswer, error) {
	return post[UndoLeversAnswer](ctx, c, PathLeversUndo, struct{}{})
}
