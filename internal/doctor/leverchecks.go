package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/epplan/epplan/internal/steer"
	"github.com/epplan/epplan/slurm/hooks"
)

var leversLeft = &Fault{
	"levers-left", Bad, "no epd runs, and its changes in Slurm are still there: {left}",
	"new jobs pass those that epd put behind others, and nothing restores them",
	Fix{Run: "epd restore --state {state}"},
}

// checkLevers looks for what an epd that has ended left in Slurm's queue and nodes.
func checkLevers(ctx context.Context, e *examination) []Finding {
	if s, err := e.headStatus(ctx); err == nil {
		if s.Controller == nil {
			return skipFinding("the epd here is an agent")
		}
		return okFinding("epd runs, and takes back what it changes: epplan levers")
	}
	state := e.controllerState(ctx)
	if pid, err := e.site.lockHolder(state, controllerRole.name); err == nil && pid != 0 {
		return unknownFinding("process %d has what epd changed in Slurm, and doesn't answer", pid)
	}
	read := func(path string) ([]byte, error) {
		text, err := e.site.Files.Read(path)
		return []byte(text), err
	}
	left, err := steer.ReadLeftovers(state, read, nil)
	if err == nil && len(left.Changes) > 0 && e.site.Slurm != nil {
		asked, cancel := context.WithTimeout(ctx, slurmTimeout)
		defer cancel()
		if snap, asking := steer.SnapshotFromSlurm(e.site.client(), e.site.Now)(asked); asking == nil {
			left, err = steer.ReadLeftovers(state, read, snap)
		}
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return unknownFinding("only root and Slurm's user may see what epd changed in Slurm: %v", err)
	case err != nil:
		return leversLeft.finding("left", fmt.Sprintf("nobody can tell what, %v", err), "state",
			hooks.ShellQuote(state))
	case len(left.Changes)+left.Waiting > 0:
		return leversLeft.finding("left", left.String(), "state", hooks.ShellQuote(state))
	}
	return okFinding("an epd that has ended left nothing in Slurm's queue and nodes")
}
