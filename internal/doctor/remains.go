package doctor

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/steer"
)

// remainsTimeout is how long an epd is waited for.
const remainsTimeout = 2 * time.Second

// Remains returns what of epd's stays in force on this machine when Slurm's hooks are taken out, each with
// the command that takes it back: GPUs that are locked, and changes in Slurm's queue and nodes. Hooks is
// the socket that the hooks ask and journal where the Epilog looks for the journal; socket is the one of
// any epd. Empty ones are the defaults.
func Remains(ctx context.Context, hooks, socket, journal string) []string {
	ctx, cancel := context.WithTimeout(ctx, remainsTimeout)
	defer cancel()
	restore := "epplan restore"
	if hooks != "" {
		restore += " --socket " + hooks
	}
	journal = cmp.Or(journal, filepath.Join(defaultState, journalFolder))
	return append(lockedRemains(ctx, cmp.Or(hooks, socket, epdapi.AgentSocket), journal, restore),
		leverRemains(ctx, socket, filepath.Dir(journal))...)
}

// lockedRemains says which GPUs of this node are locked: Slurm calls no Epilog of ours for the jobs that
// run now.
func lockedRemains(ctx context.Context, socket, journal, restore string) []string {
	status, err := epdapi.New(socket).Status(ctx)
	if err != nil {
		// Of a pattern without wildcards but one.
		entries, _ := filepath.Glob(filepath.Join(journal, "*.json"))
		if len(entries) == 0 {
			return nil
		}
		return []string{fmt.Sprintf("epd doesn't answer, and its journal names %s: locked, maybe, until it does; "+
			"to give clocks back at once: %s --journal %s", gpuCount(len(entries)), restore, journal)}
	}
	locked := 0
	for i := range status.GPUs {
		if g := &status.GPUs[i]; g.IsLocked() {
			locked++
		}
	}
	if locked == 0 {
		return nil
	}
	return []string{fmt.Sprintf("locked for jobs that run: %s of this node; they end without "+
		"an Epilog of ours, "+
		"and epd gives their clocks back within two minutes of that; at once: %s", gpuCount(locked), restore)}
}

func gpuCount(n int) string {
	if n == 1 {
		return "1 GPU"
	}
	return fmt.Sprintf("%d GPUs", n)
}

// leverRemains says what epd changed in Slurm's queue and nodes: without its state folder nothing takes
// that back.
func leverRemains(ctx context.Context, socket, state string) (said []string) {
	const still = "Slurm's queue and nodes still have changes of epd's: %s; take them back before its state folder " +
		"goes: %s"
	sockets := []string{epdapi.ControllerSocket, epdapi.PublicSocket, epdapi.AgentSocket}
	if socket != "" {
		sockets = []string{socket}
	}
	if levers, err := epdapi.New(sockets...).Levers(ctx); err == nil {
		if n := levers.InForce(); n > 0 {
			said = append(said, fmt.Sprintf(still, fmt.Sprintf("%d jobs and nodes", n), "epplan levers --undo"))
		}
		return said
	}
	for _, folder := range []string{state, defaultControllerState} {
		left, err := steer.ReadLeftovers(folder, os.ReadFile, nil)
		restore := "epd restore --state " + folder
		switch {
		case err != nil:
			said = append(said, fmt.Sprintf(still, "which can't be told, "+err.Error(), restore))
		case len(left.Changes) > 0:
			said = append(said, fmt.Sprintf(still, left.String(), restore))
		}
	}
	return said
}
