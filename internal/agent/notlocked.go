package agent

import (
	"context"
	"errors"
	"io/fs"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/gpu"
	"github.com/epplan/epplan/live"
)

// notLockedKinds are the kinds of errors that keep clocks from being set. The first that fits counts.
var notLockedKinds = []struct {
	err  error
	kind live.NotLockedKind
}{
	{ErrLate, live.NotLockedLate},
	{ErrSetting, live.NotLockedSetting},
	{ErrShared, live.NotLockedShared},
	{ErrJournal, live.NotLockedJournal},
	{errRestarted, live.NotLockedRestart},
	{ErrExternalChange, live.NotLockedExternal},
	{errReturned, live.NotLockedExternal},
	{errLimitChanged, live.NotLockedExternal},
	{gpu.ErrPermission, live.NotLockedPermission},
	{gpu.ErrLost, live.NotLockedLost},
	{ErrNoGPU, live.NotLockedLost},
	{context.DeadlineExceeded, live.NotLockedLate},
}

// errRestarted tells that the agent was started anew under a run.
var errRestarted = errors.New("the agent was restarted")

// notLocked is why a run's clocks aren't set, after an error of the driver or of what the agent keeps on disk.
func notLocked(err error) live.NotLocked {
	why := live.NotLocked{Kind: live.NotLockedDriver, Why: err.Error()}
	for _, k := range notLockedKinds {
		if errors.Is(err, k.err) {
			why.Kind = k.kind
			return why
		}
	}
	if _, onDisk := errors.AsType[*fs.PathError](err); onDisk {
		why.Kind = live.NotLockedJournal
	}
	return why
}

// NotLocked is why clocks that were decided weren't set, or not to the run's end.
func (c *ClosedRun) NotLocked() live.NotLocked {
	wanted := c.Run.Setting.WithoutProfile() != dvfsmodel.Setting{}
	switch {
	case c.Run.Wish.OptOut:
		return live.NotLocked{}
	case !wanted:
		return c.Run.Unset
	case c.HandsOff != "":
		return live.NotLocked{Kind: c.kind, Why: c.HandsOff}.Cut(len(c.HandsOff))
	case c.Outcome.Shared:
		return live.NotLocked{
			Kind: live.NotLockedShared, Why: "another run was on a GPU of its, which goes by the faster one",
		}
	}
	return live.NotLocked{}
}
