package login

import "context"

// Role is what a viewer may do, more from one to the next.
type Role int

// The roles. Users see what concerns them; readers everything; administrators may
// change things.
const (
	Anonymous Role = iota
	User
	Reader
	Admin
)

// String returns the role in a word.
func (r Role) String() string {
	switch r {
	case User:
		return "user"
	case Reader:
		return "reader"
	case Admin:
		return "admin"
	case Anonymous:
	}
	return "nobody in particular"
}

// Viewer is who looks at pages.
type Viewer struct {
	UID  int64  // by the kernel; negative: somebody at a port
	Name string // of the user, or of the token; empty: none is known
	Role Role
	// Session is what forms are bound to; empty: somebody without a login.
	Session string
}

// SeesAll reports whether everybody's jobs are shown.
func (v Viewer) SeesAll() bool { return v.Role >= Reader }

// Scope says what of pages the viewer sees, where that isn't everything; else it is empty.
func (v Viewer) Scope() string {
	switch {
	case v.SeesAll():
		return ""
	case v.Role == User:
		return "You see your own jobs only. Nodes, counts and savings are of the whole cluster."
	}
	return "You aren't logged in: no job, user or workload is shown."
}

// Acts reports whether actions are offered, and done.
func (v Viewer) Acts() bool { return v.Role >= Admin }

type viewerKey struct{}

// WithViewer returns a context of a request of a viewer.
func WithViewer(ctx context.Context, v Viewer) context.Context {
	return context.WithValue(ctx, viewerKey{}, v)
}

// ViewerOf returns who asks; nobody in particular without one in the context.
func ViewerOf(ctx context.Context) Viewer {
	if v, ok := ctx.Value(viewerKey{}).(Viewer); ok {
		return v
	}
	return Viewer{UID: -1}
}
