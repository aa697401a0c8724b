package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/daemon"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/spool"
	"github.com/epplan/epplan/internal/steer"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
	"github.com/epplan/epplan/slurm/lever"
)

// controllerStateFolder is the state folder of a controller's unit.
const controllerStateFolder = "/var/lib/epplan-controller"

// leverFolders returns the state folders whose levers epd restore takes back: the one that is named, or else
// those of the units. A folder without levers is left out.
func leverFolders(c *cli.Context) []string {
	folders := []string{c.String("state")}
	if !c.IsSet("state") {
		folders = append(folders, controllerStateFolder)
	}
	var found []string
	for _, state := range folders {
		if _, err := os.Stat(steer.Folder(state)); err == nil {
			found = append(found, state)
		}
	}
	return found
}

// leverSteps returns the changes in Slurm that would be taken back.
func leverSteps(folders []string) (steps []string, err error) {
	for _, state := range folders {
		left, err := steer.ReadLeftovers(state, spool.Disk().Read, nil)
		if err != nil {
			return nil, err
		}
		for _, u := range left.Changes {
			steps = append(steps, fmt.Sprintf("take %s back to %q, if it still is %q, as %s says",
				leverValueText(&u), u.Before, u.After, steer.Folder(state)))
		}
	}
	return steps, nil
}

// leverValueText names a value that epd changed.
func leverValueText(u *lever.Undo) string {
	if u.Job != 0 {
		return fmt.Sprintf("the %s of job %s", u.Lever, u.Job)
	}
	return fmt.Sprintf("the %s of node %s", u.Lever, u.Node)
}

// restoreQueue takes back what an epd with this state folder changed in Slurm's queue and nodes, unless one
// runs with it, or another machine's goes on with it. Root acts as the user whose folder it is, from here
// on.
func restoreQueue(c *cli.Context, state string, stderr io.Writer) error {
	runner, err := slurmRunner(c.String("slurm"), min(epdapi.ListWait, c.Duration("within")))
	if err != nil {
		return err
	}
	if runner == nil {
		left, err := steer.ReadLeftovers(state, spool.Disk().Read, nil)
		if err == nil && len(left.Changes) > 0 {
			err = fmt.Errorf("epd's changes in Slurm stay (%s), as its commands aren't here: run epd restore "+
				"--state %s where they are", left.String(), state)
		}
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context, c.Duration("within"))
	defer cancel()
	client := slurm.NewClient(runner, c.Duration("within"))
	if c.Bool("standby") {
		other := &chargeWatch{slurm: client, host: nodeName(c)}
		if ours, err := other.isOurs(ctx); err == nil && !ours {
			const said = "note: another machine's slurmctld is in charge: its epd goes on with Slurm's queue\n"
			_, _ = io.WriteString(stderr, said)
			return nil
		}
	}
	acting, err := actAsOwner(state)
	if err == nil {
		err = takeBackLevers(ctx, client, state, stderr)
	}
	if err != nil && acting {
		err = fmt.Errorf("as user %d, whose folder %s is: %w", os.Geteuid(), state, err)
	}
	return err
}

// takeBackLevers takes back what the levers of a state folder say, and says what is left.
func takeBackLevers(ctx context.Context, client *slurm.Client, state string, stderr io.Writer) error {
	lock, err := daemon.LockState(state, roleController)
	if errors.Is(err, daemon.ErrTaken) {
		return fmt.Errorf("an epd that runs has Slurm's queue: epplan levers --undo has it take everything "+
			"back: %w", err)
	}
	if err != nil {
		return err
	}
	defer lock.Release()
	began := time.Now()
	r, err := steer.TakeBack(ctx, &steer.Options{
		Source: steer.SnapshotFromSlurm(client, time.Now), Levers: lever.New(client),
		PowerSaving: client.PowerSaving, Booted: client.Booted, Dir: steer.Folder(state),
		Log: newLog(stderr),
	})
	if r.Undone > 0 {
		_, _ = fmt.Fprintf(stderr, "note: %d of epd's changes in Slurm's queue and nodes taken back in %.1f s\n",
			r.Undone, time.Since(began).Seconds())
	}
	if r.Running > 0 {
		_, _ = fmt.Fprintf(stderr, "note: %d of jobs that have started stay: they count for nothing unless Slurm "+
			"requeues such a job\n", r.Running)
	}
	again := "epd restore --state " + hooks.ShellQuote(filepath.Clean(state))
	if left := r.More + r.Failed; err != nil || left > 0 {
		return errors.Join(err, fmt.Errorf("%d changes are left in Slurm; to go on: %s", left, again))
	}
	if held := r.Waiting - r.Running; held > 0 {
		return fmt.Errorf("%d changes are left, of jobs that are held, which it would release, or of nodes that "+
			"power down: once they are released, or down: %s", held, again)
	}
	return nil
}
