package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/slurm"
)

// exitUnreachable is the status when epd doesn't answer.
const exitUnreachable = 4

// statusBound is how long status waits.
const statusBound = 5 * time.Second

func (t *terminal) statusCommand() *cli.Command {
	return &cli.Command{
		Name:        "status",
		Usage:       "what epd is doing on this node: GPUs, locked clocks, runs",
		Description: "Exit status 4: epd can't be reached.\nExample: epplan status --json",
		Flags:       []cli.Flag{socketFlag(), jsonFlag()},
		Action:      t.status,
	}
}

func (t *terminal) status(c *cli.Context) error {
	if err := takes(c, 0, 0, "none"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context, statusBound)
	defer cancel()
	s, err := epdapi.New(c.String("socket")).Status(ctx)
	if errors.Is(err, epdapi.ErrUnreachable) {
		return &hintedError{err: err, hint: "is epd running? --socket names another socket"}
	}
	if err != nil {
		return err
	}
	return t.print(func(w io.Writer) error {
		if c.Bool("json") {
			return json.NewEncoder(w).Encode(s)
		}
		_, err := io.WriteString(w, statusText(s))
		return err
	})
}

// statusText is a status for people.
func statusText(s *epdapi.Status) string {
	var b strings.Builder
	fmt.Fprintf(&b, "epd %s, role %s, on %s since %s\n", s.Version, s.Role, s.Node, s.Started.Local().Format(time.DateTime))
	for _, g := range s.GPUs {
		fmt.Fprintf(&b, "GPU %d  %s  %s  core %s, memory %s, %.0f W", g.Minor, g.Model, g.UUID, clockText(g.Core, g.LockedCore), clockText(g.Mem, g.LockedMem), g.Power)
		if g.Stuck {
			b.WriteString(", the driver doesn't answer")
		}
		if g.Alien != "" {
			fmt.Fprintf(&b, ", left alone: %s", slurm.Printable(g.Alien, 200))
		}
		b.WriteByte('\n')
	}
	for _, r := range s.Runs {
		fmt.Fprintf(&b, "job %d  %d GPUs  since %s", r.Job, len(r.GPUs), r.Started.Local().Format(time.DateTime))
		if r.HandsOff != "" {
			fmt.Fprintf(&b, "  default clocks: %s", slurm.Printable(r.HandsOff, 200))
		}
		b.WriteByte('\n')
	}
	if s.Totals != nil {
		fmt.Fprintf(&b, "since the start: %d decisions, %d outcomes; %d models in use; %d outcomes wait to be recorded\n", s.Totals.Decisions, s.Totals.Outcomes, s.Totals.Models, s.Unrecorded)
	}
	for _, trouble := range s.Troubles {
		fmt.Fprintf(&b, "%s  %s\n", trouble.At.Local().Format(time.DateTime), slurm.Printable(trouble.What, 400))
	}
	return b.String()
}

// clockText is a clock that runs, and what it is locked at.
func clockText(now, locked float64) string {
	text := strconv.FormatFloat(now, 'f', -1, 64)
	if locked > 0 {
		text += " locked at " + strconv.FormatFloat(locked, 'f', -1, 64)
	}
	return text + " MHz"
}
