package control

import (
	"context"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// UseModel puts a version of a workload's model in use, and keeps later fits
// from replacing it. Version 0 takes the one in use out. Both are remembered
// over restarts, with the caller of the context, who chose it.
func (c *Controller) UseModel(ctx context.Context, key record.WorkloadKey, version int64, note string) error {
	return c.learner.Use(ctx, key, version, c.choiceOf(ctx, note))
}

// FreeModel lets fits replace a workload's model again, or make one where none is
// in use. The caller of the context, who did it, is remembered over restarts.
func (c *Controller) FreeModel(ctx context.Context, key record.WorkloadKey) error {
	return c.learner.Free(ctx, key, c.choiceOf(ctx, ""))
}

// choiceOf is a choice that the caller of a context makes now.
func (c *Controller) choiceOf(ctx context.Context, why string) epdapi.Chosen {
	by := strings.NewReplacer("[", "(", "]", ")").Replace(slurm.Printable(c.nameOf(ctx), epdapi.MaxModelName))
	return epdapi.Chosen{By: by, At: c.options.Clock().UTC().Truncate(time.Second), Why: why}
}

// nameOf is who asks, for those who look later: a user's name, or uid; a token of
// the pages as "alice (token)".
func (c *Controller) nameOf(ctx context.Context) string {
	who, known := ctx.Value(callerKey{}).(Caller)
	switch {
	case !known:
		return "epd"
	case who.UID == math.MaxUint32:
		return who.Name + " (token)"
	case who.Name != "":
		return who.Name
	}
	if c.options.UserName != nil {
		if name := c.options.UserName(who.UID); name != "" {
			return name
		}
	}
	return "uid " + strconv.FormatUint(uint64(who.UID), 10)
}
