package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/cmd/internal/dryrun"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/slurm"
)

// dryRunHook says what a Prolog or an Epilog would do.
func dryRunHook(c *cli.Context, event *slurm.HookEvent) (stop bool, err error) {
	gpus := "no GPU that is known"
	if event.GPUsKnown {
		numbers := make([]string, len(event.GPUs))
		for i, n := range event.GPUs {
			numbers[i] = strconv.Itoa(n)
		}
		gpus = plural(len(event.GPUs), "GPU")
		if len(numbers) > 0 {
			gpus += " (" + strings.Join(numbers, ", ") + ")"
		}
	}
	return dryrun.Announce(c, fmt.Sprintf("tell epd at %s of the %s of job %d on %s with %s",
		c.String("socket"), event.Kind, event.Job, event.Node, gpus))
}

// dryRunRestore says which clocks would be given back, as epd has them.
func dryRunRestore(ctx context.Context, t *terminal, c *cli.Context) (stop bool, err error) {
	if !dryrun.IsSet(c) {
		return false, nil
	}
	s, err := epdapi.New(c.String("socket")).Status(ctx)
	if errors.Is(err, epdapi.ErrUnreachable) {
		t.message("warning", err.Error())
		return true, restoreByJournal(t, c)
	}
	if err != nil {
		return true, err
	}
	var steps []string
	for i := range s.GPUs {
		if g := &s.GPUs[i]; g.LockedCore > 0 || g.LockedMem > 0 {
			steps = append(steps, fmt.Sprintf("give the clocks of %s back, now core %s, memory %s", g.UUID,
				clockText(g.Core, g.LockedCore), clockText(g.Mem, g.LockedMem)))
		}
	}
	return dryrun.Announce(c, steps...)
}

// dryRunUndo says what of Slurm would be taken back.
func dryRunUndo(c *cli.Context) (stop bool, err error) {
	if !dryrun.IsSet(c) {
		return false, nil
	}
	now, err := ask(c, controllerFirst,
		func(ctx context.Context, epd *epdapi.Client) (*epdapi.Levers, error) { return epd.Levers(ctx) })
	if err != nil {
		return true, err
	}
	var steps []string
	for _, part := range []struct {
		count int
		what  string
	}{
		{now.Nice, "the nice of %s"},
		{now.Prefer, "the preference of %s"},
		{now.Weights, "the weight of %s"},
		{now.Asleep, "the sleep of %s"},
	} {
		if part.count > 0 {
			noun := "job"
			if strings.Contains(part.what, "weight") || strings.Contains(part.what, "sleep") {
				noun = "node"
			}
			steps = append(steps, "take back "+fmt.Sprintf(part.what, plural(part.count, noun)))
		}
	}
	return dryrun.Announce(c, steps...)
}

// dryRunReload says which configuration epd would read again.
func dryRunReload(c *cli.Context) (stop bool, err error) {
	if !dryrun.IsSet(c) {
		return false, nil
	}
	s, err := ask(c, controllerFirst, func(ctx context.Context, epd *epdapi.Client) (*epdapi.Status, error) {
		return epd.Status(ctx)
	})
	if err != nil {
		return true, err
	}
	file, version := "its configuration", "none"
	if s.Health != nil && s.Health.Config != "" {
		file = s.Health.Config
	}
	if s.Controller != nil {
		version = s.Controller.ConfigVersion
	}
	return dryrun.Announce(c, fmt.Sprintf("have epd read %s again, now %s is in force", file, version))
}
