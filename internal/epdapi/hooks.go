package epdapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// Submit asks what to note on a job that is being submitted.
func (c *Client) Submit(ctx context.Context, s *hooks.Submission) (hooks.SubmitAnswer, error) {
	var answer hooks.SubmitAnswer
	err := c.call(ctx, http.MethodPost, PathSubmit, s, &answer)
	return answer, err
}

// PathPower is where Slurm's SuspendProgram and ResumeProgram tell what they did.
const PathPower = "/v1/power"

// PowerEvent is what a SuspendProgram or ResumeProgram tells.
type PowerEvent struct {
	Action string            `json:"what"` // suspend or resume
	Nodes  []string          `json:"nodes"`
	Failed map[string]string `json:"failed,omitempty"` // by node: why
}

// maxPowerNodes bounds what one call of Slurm's may name.
const maxPowerNodes = 1 << 16

// Validate reports whether the news may be believed.
func (p *PowerEvent) Validate() error {
	if p.Action != "suspend" && p.Action != "resume" || len(p.Nodes) == 0 || len(p.Nodes) > maxPowerNodes {
		return fmt.Errorf("%s of %d nodes: want suspend or resume of 1 to %d: %w",
			slurm.Printable(p.Action, 40), len(p.Nodes), maxPowerNodes, slurm.ErrInvalid)
	}
	var err error
	for _, n := range p.Nodes {
		err = errors.Join(err, slurm.ValidNode(n))
	}
	for n := range p.Failed {
		if !slices.Contains(p.Nodes, n) {
			err = errors.Join(err, fmt.Errorf("node %s failed and is not among them: %w",
				slurm.Printable(n, 80), slurm.ErrInvalid))
		}
	}
	return err
}

// Power tells which nodes are switched off or on.
func (c *Client) Power(ctx context.Context, news *PowerEvent) error {
	var done struct{}
	return c.call(ctx, http.MethodPost, PathPower, news, &done)
}
