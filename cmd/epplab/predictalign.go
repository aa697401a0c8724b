package main

import (
	"context"
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/align"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/openai"
	"github.com/epplan/epplan/internal/predict/probe"
)

const styleExamples = 3

// aligner has sources rewritten that are unlike all that was learnt from.
type aligner struct {
	terminal    *terminal.Terminal
	client      *align.Client
	embed       embedFunc
	unreachable bool // the server gives no answers
}

// newAligner returns the one that is asked for; nil: none is.
func newAligner(t *terminal.Terminal, c *cli.Context) (*aligner, error) {
	if !c.IsSet("align") {
		return nil, nil //nolint:nilnil // none is an answer
	}
	client, err := align.New(&align.Options{
		URL: c.String("align"), Hosts: c.StringSlice("allow-host"), Model: c.String("align-model"),
		KeyFile: c.String("align-key"),
		Rounds:  c.Int("align-rounds"), Timeout: c.Duration("align-timeout"),
	})
	if err != nil {
		return nil, terminal.WithHint(err, "--allow-host names hosts that source code may be sent to")
	}
	return &aligner{terminal: t, client: client}, nil
}

// align returns the embedding of a rewrite that passed; nil: none did, and a warning says
// why. The error is that of an interruption.
func (a *aligner) align(
	ctx context.Context, id, text string, e []float64, distances *probe.Distances, learnt []string,
) ([]float64, error) {
	if a.unreachable {
		return nil, nil //nolint:nilnil // as above
	}
	var examples []string
	for _, i := range distances.Nearest(e, styleExamples) {
		examples = append(examples, learnt[i])
	}
	var rewritten []float64
	result, err := a.client.Align(ctx, text, examples,
		func(ctx context.Context, text string) (_ probe.Novelty, err error) {
			rewritten, err = a.embed(ctx, text)
			if err != nil {
				return probe.Novelty{}, err
			}
			return distances.NoveltyOf(rewritten), nil
		})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		a.unreachable = errors.Is(err, openai.ErrUnavailable)
		a.terminal.Message("warning", "job "+id+" is predicted from its source as it is: "+err.Error())
		return nil, nil //nolint:nilnil // as above
	case result.Text == "":
		a.terminal.Message("warning",
			"job "+id+" is predicted from its source as it is: no rewrite passed, "+result.Why)
		return nil, nil //nolint:nilnil // as above
	}
	return rewritten, nil
}
