package login

import (
	"context"
	"slices"

	"github.com/epplan/epplan/config"
)

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
	ByProxy bool // logged in at the site's proxy, and out there alone
}

// SeesAll reports whether everybody's jobs are shown.
func (v Viewer) SeesAll() bool { return v.Role >= Reader }

// Scope says what of pages the viewer sees, where that isn't everything; else it is empty.
func (v Viewer) Scope() string {
	switch {
	case v.SeesAll():
		return ""
	case v.Role == User && v.UID < 0:
		return "epd's machine knows no user of your name, so no job is yours. Nodes, counts and savings are of the " +
			"whole cluster."
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

// Accounts finds the user of this machine who has a name, and as which the machine knows
// that user; ok is false if there is none.
type Accounts func(name string) (uid uint32, user string, ok bool)

// NamedViewer returns the viewer of a name that was proved elsewhere: by the site's proxy, or by an
// issuer, which may state groups, too. The configuration says the role, and the machine whose
// jobs are the viewer's.
func NamedViewer(w *config.Web, name string, groups []string, accounts Accounts) Viewer {
	v := Viewer{UID: -1, Name: name, Role: User, Session: "name " + name}
	isIn := func(names, ofRole []string) bool {
		return slices.Contains(names, name) ||
			slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(ofRole, g) })
	}
	switch {
	case isIn(w.Admins, w.OIDC.AdminGroups):
		v.Role = Admin
	case isIn(w.Readers, w.OIDC.ReaderGroups):
		v.Role = Reader
	}
	if accounts == nil {
		return v
	}
	if uid, user, ok := accounts(name); ok {
		v.UID, v.Name = int64(uid), user
	}
	return v
}

// IssuerLogin is somebody who logged in at the site's issuer.
type IssuerLogin struct {
	Issuer string
	Name   string
	Groups []string // of those with a role
	Next   string   // where the login leads
}

// IssuerError is returned for a login at the site's issuer that came to nothing.
type IssuerError struct {
	Status int    // of the page that says so
	Text   string // for whoever logs in
	Cause  error  // for epd's log; nil: nothing more is known
}

// Error returns both texts.
func (e *IssuerError) Error() string {
	if e.Cause == nil {
		return e.Text
	}
	return e.Text + " (" + e.Cause.Error() + ")"
}

// Unwrap returns the cause.
func (e *IssuerError) Unwrap() error { return e.Cause }
