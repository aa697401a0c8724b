package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"

	"github.com/epplan/epplan/internal/daemon"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/pause"
	"github.com/epplan/epplan/slurm"
)

// How often Slurm is asked which slurmctld is in charge, and after how many answers that it is another machine's a
// controller ends. An answer may take as long as other questions: scontrol ping waits for a machine that is
// gone before it asks the next.
const (
	chargeEvery = 2 * time.Second
	chargeTimes = 2
)

// maxChargeTrouble bounds what is told of an answer of Slurm's.
const maxChargeTrouble = 200

// errNotInCharge ends a controller: another machine's slurmctld is in charge.
var errNotInCharge = errors.New("another machine's slurmctld is in charge: its epd goes on with the records")

// acquireStateFolder makes the state folder this process's own: one that stands by waits until it's its turn. A nil
// function: the context ended before.
func acquireStateFolder(p *program) (release func(), err error) {
	if !p.Bool("standby") {
		return lockState(p)
	}
	runner, err := slurmRunner(p.String("slurm"), epdapi.QueueWait)
	if err != nil {
		return nil, err
	}
	if runner == nil {
		return nil, usagef("--standby needs scontrol, which says which slurmctld is in charge")
	}
	c := &chargeWatch{slurm: slurm.NewClient(runner, epdapi.QueueWait), host: nodeName(p.Context), log: p.log}
	p.loops = append(p.loops, func(ctx context.Context) {
		if c.awaitLoss(ctx) {
			p.fail(errNotInCharge)
		}
	})
	return release, c.await(p.Context.Context, func() (err error) {
		release, err = lockState(p)
		return err
	})
}

// chargeWatch knows whether the slurmctld of this machine is in charge.
type chargeWatch struct {
	slurm *slurm.Client
	host  string // this machine, as SlurmctldHost names it
	log   *slog.Logger
	said  string // what it waits for
}

// isOurs reports whether this machine's slurmctld is in charge; an error: nobody can tell.
func (c *chargeWatch) isOurs(ctx context.Context) (bool, error) {
	host, err := c.slurm.InCharge(ctx)
	return err == nil && shortName(host) == shortName(c.host), err
}

// shortName returns a host's name without its domain.
func shortName(host string) string {
	short, _, _ := strings.Cut(strings.ToLower(host), ".")
	return short
}

// await waits until this machine's slurmctld is in charge and take succeeds, which makes the state folder this
// process's own: the epd that had it may not have ended yet. It gives up without an error when the context ends.
func (c *chargeWatch) await(ctx context.Context, take func() error) error {
	notify(c.log, systemd.SdNotifyReady)
	for {
		reason := "the slurmctld of another machine is in charge"
		ours, err := c.isOurs(ctx)
		if ours {
			if err = take(); err == nil || !errors.Is(err, daemon.ErrTaken) {
				return err
			}
		}
		if err != nil {
			reason = slurm.Printable(err.Error(), maxChargeTrouble)
		}
		if reason != c.said {
			c.log.Info("standing by", "host", c.host, "reason", reason)
			notify(c.log, "STATUS=standing by: "+reason)
			c.said = reason
		}
		if pause.For(ctx, chargeEvery) != nil {
			return nil //nolint:nilerr // it was told to end
		}
	}
}

// awaitLoss waits until another machine's slurmctld is in charge, and is false when the context ends. While nobody
// can tell, as when no slurmctld runs, it goes on.
func (c *chargeWatch) awaitLoss(ctx context.Context) bool {
	for others := 0; others < chargeTimes; {
		if pause.For(ctx, chargeEvery) != nil {
			return false
		}
		switch ours, err := c.isOurs(ctx); {
		case err != nil:
		case ours:
			others = 0
		default:
			others++
		}
	}
	return true
}
