package main

import (
	"context"
	"errors"
	"strings"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"

	"github.com/epplan/epplan/internal/daemon"
	"github.com/epplan/epplan/internal/pause"
	"github.com/epplan/epplan/slurm"
)

// How often Slurm is asked which slurmctld is in charge, how long that may take, and after how many answers
// that it is another machine's a controller ends.
const (
	chargeEvery = 2 * time.Second
	chargeWait  = 5 * time.Second
	chargeTimes = 2
)

// errNotInCharge ends a controller: another machine's slurmctld is in charge.
var errNotInCharge = errors.New("another machine's slurmctld is in charge: its epd goes on with the records")

// charge knows whether the slurmctld of this machine is in charge.
type charge struct {
	slurm *slurm.Client
	host  string // as SlurmctldHost has it, of this machine
}

// newCharge asks by the commands of Slurm that --slurm names.
func (p *program) newCharge() (*charge, error) {
	runner, err := slurmRunner(p.String("slurm"))
	if err != nil {
		return nil, err
	}
	if runner == nil {
		return nil, usagef("--standby needs scontrol, which says which slurmctld is in charge")
	}
	return &charge{slurm: slurm.NewClient(runner, chargeWait), host: nodeName(p.Context)}, nil
}

// isOurs reports whether this machine's slurmctld is in charge; an error: nobody can tell.
func (c *charge) isOurs(ctx context.Context) (bool, error) {
	host, err := c.slurm.InCharge(ctx)
	return err == nil && shortName(host) == shortName(c.host), err
}

// shortName is a host's name without its domain.
func shortName(host string) string {
	short, _, _ := strings.Cut(strings.ToLower(host), ".")
	return short
}

// awaitCharge waits until this machine's slurmctld is in charge and take, which makes the state folder this
// process's own, succeeds: the epd that had it may not have ended yet. It is false when the context ends.
func (p *program) awaitCharge(c *charge, take func() error) (bool, error) {
	p.log.Info("standing by", "host", c.host)
	notify(p.log, systemd.SdNotifyReady)
	said := ""
	say := func(what string) {
		if what != said {
			p.log.Info("standing by", "reason", what)
			notify(p.log, "STATUS=standing by: "+what)
			said = what
		}
	}
	for {
		ours, err := c.isOurs(p.Context.Context)
		switch {
		case err != nil:
			say("which slurmctld is in charge isn't known: " + slurm.Printable(err.Error(), maxChargeTrouble))
		case !ours:
			say("the slurmctld of another machine is in charge")
		default:
			err := take()
			if err == nil || !errors.Is(err, daemon.ErrTaken) {
				return err == nil, err
			}
			say(err.Error())
		}
		if pause.For(p.Context.Context, chargeEvery) != nil {
			return false, nil
		}
	}
}

// maxChargeTrouble bounds what is told of an answer of Slurm's.
const maxChargeTrouble = 200

// keepCharge ends the program once another machine's slurmctld is in charge. While nobody can tell, as when
// no slurmctld runs, it goes on.
func (p *program) keepCharge(ctx context.Context, c *charge) {
	for others := 0; pause.For(ctx, chargeEvery) == nil; {
		switch ours, err := c.isOurs(ctx); {
		case err != nil:
		case ours:
			others = 0
		default:
			others++
		}
		if others >= chargeTimes {
			p.fail(errNotInCharge)
			return
		}
	}
}
