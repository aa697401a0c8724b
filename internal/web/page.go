package web

import (
	"bytes"
	"context"
	"embed"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/internal/web/login"
)

// Request is what a page is made from.
type Request struct {
	*http.Request
	Viewer login.Viewer
	Source Source
	Admin  Administration
	Query  url.Values // the parameters of the address
	Now    time.Time
	site   *Site
}

// View is a page.
type View struct {
	Title string // of the window, and the heading
	Lead  string // a sentence or two below it; empty: none
	// Back leads to the page above this one; without an address there is none.
	Back     page.Link
	Sections []Section
	// Still pages aren't brought up to date by the script.
	Still bool
}

// Section is a part of a page. The ids of a page's sections are unique, and the
// same each time: the script replaces a section by the one with its id.
type Section struct {
	ID      string
	Heading string // empty: none
	Parts   []any  // of package page
	// Still sections aren't replaced: they have forms that somebody fills in.
	Still bool
	// State is said to those who don't see the page when it changes; empty: nothing.
	State string
}

// add adds a section to a page, unless it has no parts.
func (v *View) add(id, heading string, parts ...any) *Section {
	if len(parts) == 0 {
		return &Section{}
	}
	v.Sections = append(v.Sections, Section{ID: id, Heading: heading, Parts: parts})
	return &v.Sections[len(v.Sections)-1]
}

type pageRoute struct {
	path    string     // of package http: "/queue", "/jobs/{id}"
	name    string     // in the navigation; empty: it isn't there
	minRole login.Role // who may see it at least
	render  func(ctx context.Context, r *Request) (*View, error)
}

// actionRoute is something that can be done by a form.
type actionRoute struct {
	path    string
	minRole login.Role // who may do it at least
	// perform does it, and names the page to show next.
	perform func(ctx context.Context, r *Request) (next string, err error)
}

//go:embed templates/*.html
var templateFiles embed.FS

// templates are the frame with the site's own parts.
var templates = template.Must(
	page.Templates().Funcs(template.FuncMap{"local": page.IsLocal}).ParseFS(templateFiles,
		"templates/*.html"),
)

// pageData is what the templates are given.
type pageData struct {
	*View
	Viewer    login.Viewer
	Hidden    template.HTML // the token of forms
	AtPort    bool
	Version   string
	Made      string // when, for people
	StyleHref string
}

// whatIfPath is a page that waits for its turn to plan before it has one as a page.
const whatIfPath = "/whatif"

// servePage answers with a page.
func (s *Site) servePage(w http.ResponseWriter, r *http.Request, e *pageRoute) {
	v := login.ViewerOf(r.Context())
	if !s.canSee(v, e.minRole) {
		s.denyAccess(w, r, v, e.minRole)
		return
	}
	if e.path != whatIfPath {
		s.serveLimited(w, r, e, func() {})
		return
	}
	planned, ok := s.waitForPlanTurn(w, r)
	if ok {
		s.serveLimited(w, r, e, planned)
	}
}

// serveLimited answers with a page when its turn has come, and says when it is made.
func (s *Site) serveLimited(w http.ResponseWriter, r *http.Request, e *pageRoute, made func()) {
	done, ok := s.acquireTurn(r.Context())
	if !ok {
		made()
		s.showError(w, r, errBusy)
		return
	}
	serveBuffered(w, func() { done(); made() }, func(w http.ResponseWriter) { s.makePage(w, r, e) })
}

// makePage makes a page within its time.
func (s *Site) makePage(w http.ResponseWriter, r *http.Request, e *pageRoute) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	view, err := e.render(ctx, s.newRequest(r, login.ViewerOf(r.Context())))
	if err != nil {
		s.showError(w, r, err)
		return
	}
	s.write(w, r, http.StatusOK, view)
}

// canSee reports whether a viewer may see a page.
func (s *Site) canSee(v login.Viewer, least login.Role) bool {
	if least == login.Anonymous && v.Role == login.Anonymous {
		return s.options.Settings().Anonymous == "aggregates"
	}
	return v.Role >= least
}

func (s *Site) newRequest(r *http.Request, v login.Viewer) *Request {
	source, admin := s.options.Source(v)
	return &Request{
		Request: r, Viewer: v, Source: source, Admin: admin, Query: r.URL.Query(), Now: s.options.Now(), site: s,
	}
}

// serveAction does something, if the viewer may, and a form of the viewer's asks
// for it.
func (s *Site) serveAction(w http.ResponseWriter, r *http.Request, a *actionRoute) {
	v := login.ViewerOf(r.Context())
	switch {
	case !s.canSee(v, max(a.minRole, login.User)):
		s.denyAccess(w, r, v, a.minRole)
		return
	case !s.checkFormToken(w, r, v):
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), actionTimeout)
	defer cancel()
	next, err := a.perform(ctx, s.newRequest(r, v))
	if err != nil {
		s.showError(w, r, err)
		return
	}
	s.options.Log.Info("done by a page", "path", r.URL.Path, "by", v.Name, "uid", v.UID)
	http.Redirect(w, r, next, http.StatusSeeOther)
}

// checkFormToken reports whether a form is one of the viewer's, and answers if it isn't.
func (s *Site) checkFormToken(w http.ResponseWriter, r *http.Request, v login.Viewer) bool {
	if err := r.ParseForm(); err != nil {
		s.showError(w, r, &pageError{
			status: http.StatusBadRequest, text: "The form can't be read.",
			hint: "Open the page again and send it once more.",
		})
		return false
	}
	if !s.forms.check(r, v) {
		s.showError(w, r, &pageError{
			status: http.StatusForbidden,
			text:   "This form isn't one of yours, or from before epd was started.",
			hint:   "Open the page again and send it once more.",
		})
		return false
	}
	return true
}

// write sends a page.
func (s *Site) write(w http.ResponseWriter, r *http.Request, status int, view *View) {
	v := login.ViewerOf(r.Context())
	f := &page.Frame{
		Title: view.Title, Site: "epd", Home: "/", Nav: s.navigation(r, v), Style: staticHref("page.css"),
		Script: staticHref("epd.js"),
		Main: &pageData{
			View: view, Viewer: v, Hidden: s.forms.hidden(v), AtPort: isPortRequest(r.Context()),
			Version: s.options.Version,
			Made:    s.options.Now().Format("2006-01-02 15:04:05 MST"), StyleHref: staticHref("web.css"),
		},
	}
	var out bytes.Buffer
	if err := page.Execute(&out, templates, f); err != nil {
		s.options.Log.Error("a page can't be written", "path", r.URL.Path, "error", err)
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if (status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests) &&
		w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes()) // whoever asked may have gone
}

// navigation leads to the pages that a viewer may see.
func (s *Site) navigation(r *http.Request, v login.Viewer) []page.Link {
	var links []page.Link
	for _, e := range s.pages {
		if e.name == "" || !s.canSee(v, e.minRole) {
			continue
		}
		href := strings.TrimSuffix(e.path, "{$}")
		here := r.URL.Path == href || href != "/" && strings.HasPrefix(r.URL.Path, href+"/")
		links = append(links, page.Link{Text: e.name, Href: href, Here: here})
	}
	return links
}

// retryAfter is in how many seconds something that can't be shown now is worth
// another try.
const retryAfter = "5"

// liveHeader marks requests that the script makes by itself.
const liveHeader = "X-Epd-Live"
