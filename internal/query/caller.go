package query

import (
	"context"
	"errors"
	"fmt"

	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/store/record"
)

// Caller is who asks. There are three tiers: administrators may do everything; operators
// see everything and change nothing; users see what concerns them alone. An agent that proves by a key, or
// by its machine's address, which node it is may speak for that node.
type Caller struct {
	UID      uint32
	Name     string // of the user; empty: not known, and so nobody's job is theirs
	Operator bool   // sees everything
	Admin    bool   // root, Slurm's user, or epd's own
	Node     string // whose agent it is, by its key; empty: no machine is proven by one
	// Machine is where an administrator asks, if that is no machine of administrators: one there may see
	// everything, and change nothing but by the agents for which it speaks. Nil: no such machine.
	Machine Machine

	inProcess bool // nobody but this process
}

// Machine tells by its error, [ErrForbidden], for which nodes root there may not speak.
type Machine interface {
	SpeaksFor(node string) error
}

// ForEPD returns the caller of what epd asks itself, for no user, such as its metrics: it may
// do everything.
func ForEPD() Caller { return Caller{Operator: true, Admin: true, inProcess: true} }

type callerKey struct{}

// WithCaller returns a context in which requests come from a caller. Whoever serves a handler to
// others must put one there.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns who asks by a context; without one there, [ForEPD].
func CallerOf(ctx context.Context) Caller {
	if c, ok := ctx.Value(callerKey{}).(Caller); ok {
		return c
	}
	return ForEPD()
}

// ErrForbidden tells that a caller isn't allowed to ask that.
var ErrForbidden = errors.New("not allowed")

// Tier is who may ask something.
type Tier int

// The tiers, each with those after it.
const (
	Anybody Tier = iota
	Operators
	Administrators
	Agents // and administrators
)

// Admits tells by its error, [ErrForbidden], that a caller may not ask.
func (t Tier) Admits(c Caller) error {
	switch {
	case c.Admin && c.Machine != nil && t == Administrators:
		return fmt.Errorf("%w: administrators may do that on the controller's machine, or on those that "+
			"admin_hosts of [live] names", ErrForbidden)
	case c.Admin, t == Anybody, t == Operators && c.Operator, t == Agents && c.Node != "":
		return nil
	case t == Operators:
		return fmt.Errorf("%w: only root, Slurm's user and operators may ask that", ErrForbidden)
	}
	return fmt.Errorf("%w: only root and Slurm's user may ask that", ErrForbidden)
}

// SpeaksFor tells by its error, [ErrForbidden], that a caller may not speak for a node's agent.
func (c Caller) SpeaksFor(node string) error {
	switch {
	case c.Admin && c.Machine != nil:
		return c.Machine.SpeaksFor(node)
	case c.Admin, c.Node != "" && c.Node == node:
		return nil
	case c.Node == "":
		return Agents.Admits(c)
	}
	return fmt.Errorf("%w: the key of %s speaks for that node alone", ErrForbidden, c.Node)
}

// canSeeAll reports whether a caller may see what anybody's jobs did.
func (c Caller) canSeeAll() bool { return c.Operator || c.Admin }

// canSee reports whether a caller may see what a user's jobs did.
func (c Caller) canSee(user string) bool {
	return c.canSeeAll() || c.recordName() != "" && user == c.recordName()
}

// recordName returns the caller's name as records have it; empty where records can't tell
// it from others.
func (c Caller) recordName() string {
	if len(c.Name) > jobs.MaxText || record.CleanText(c.Name) != c.Name {
		return ""
	}
	return c.Name
}
