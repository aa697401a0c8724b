package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/store/record"
)

// Caller is who asks. Without one in the context everything is allowed: the
// controller is asked in its own process. Otherwise there are three tiers:
// control may do everything; operators see everything and change nothing;
// users see what concerns them alone.
type Caller struct {
	UID     uint32
	Name    string // of the user; empty: not known, and so nobody's job is theirs
	All     bool   // an operator
	Control bool   // root, Slurm's user, or epd's own
}

type callerKey struct{}

// As is a context in which requests come from a caller. Whoever serves the
// handler to others must put one there.
func As(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf is who asks; without one in the context, this process, which may do
// everything.
func CallerOf(ctx context.Context) Caller {
	if c, ok := ctx.Value(callerKey{}).(Caller); ok {
		return c
	}
	return Caller{All: true, Control: true}
}

// ErrForbidden tells that a caller isn't allowed to ask that.
var ErrForbidden = errors.New("not allowed")

// tier is who may ask for a route.
type tier int

const (
	anybody tier = iota
	operators
	controllers
)

// admits tells by its error that a caller may not ask for a route.
func (t tier) admits(c Caller) error {
	switch {
	case c.Control, t == anybody, t == operators && c.All:
		return nil
	case t == operators:
		return fmt.Errorf("%w: only root, Slurm's user and operators may ask that", ErrForbidden)
	}
	return fmt.Errorf("%w: only root and Slurm's user may ask that", ErrForbidden)
}

// sees reports whether a caller may see what a user's jobs did.
func (c Caller) sees(user string) bool { return c.All || c.Control || c.own() != "" && user == c.own() }

// own is the caller's name as records have it; empty where records can't tell
// it from others.
func (c Caller) own() string {
	if len(c.Name) > jobs.MaxText || record.CleanText(c.Name) != c.Name {
		return ""
	}
	return c.Name
}
