package web

import (
	"context"
	"errors"
	"net/http"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/internal/web/login"
)

// pageError is what is shown in place of a page.
type pageError struct {
	status int
	text   string // what is wrong
	hint   string // what to do about it
}

// Error returns what is wrong.
func (e *pageError) Error() string { return e.text }

var errBusy = &pageError{
	http.StatusServiceUnavailable, "Too many pages are asked for at once.",
	"Wait a moment, then load the page again.",
}

// notFound is a page about something that isn't there.
func notFound(text, hint string) error { return &pageError{http.StatusNotFound, text, hint} }

// badQuery is a page whose address asks for something that there can't be.
func badQuery(text, hint string) error { return &pageError{http.StatusBadRequest, text, hint} }

// denyAccess answers somebody who may not see a page.
func (s *Site) denyAccess(w http.ResponseWriter, r *http.Request, v login.Viewer, least login.Role) {
	switch {
	case v.Role == login.Anonymous && isPortRequest(r.Context()) && r.Header.Get(liveHeader) == "":
		redirectToLogin(w, r)
	case least >= login.Admin:
		s.showError(w, r, &pageError{
			http.StatusForbidden, "Only administrators may do this.",
			"Root and Slurm's user may at epd's socket, admins at its port.",
		})
	case v.Role == login.Anonymous:
		s.showError(w, r, &pageError{
			http.StatusForbidden, "Nobody is logged in any more.", "Load the page again and log in.",
		})
	default:
		s.showError(w, r, &pageError{
			http.StatusForbidden, "Only operators and administrators may see this.",
			"Operators are named in [live] of epd's configuration.",
		})
	}
}

// showError shows what went wrong as a page.
func (s *Site) showError(w http.ResponseWriter, r *http.Request, err error) {
	e := s.explain(r, err)
	parts := []any{&page.Notice{Kind: page.Bad, Text: e.text}}
	if e.hint != "" {
		parts = append(parts, page.Text(e.hint))
	}
	s.write(w, r, e.status, &View{
		Title: titleOf(e.status), Still: true, Sections: []Section{{ID: "error", Still: true, Parts: parts}},
	})
}

// explain turns an error into what is shown. What epd didn't mean for people is
// logged, and not shown.
func (s *Site) explain(r *http.Request, err error) *pageError {
	if own, ok := errors.AsType[*pageError](err); ok {
		return own
	}
	if refused, ok := errors.AsType[*epdapi.RefusedError](err); ok {
		switch refused.Status {
		case http.StatusNotFound:
			return &pageError{
				http.StatusNotFound, "That isn't known.",
				"It may be somebody else's, or too old: users see their own jobs, and records are " +
					"kept for a time.",
			}
		case http.StatusForbidden:
			return &pageError{
				http.StatusForbidden, "You may not see this.",
				"Operators are named in [live] of epd's configuration.",
			}
		case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
			return &pageError{
				http.StatusBadRequest, "epd can't make sense of that: " + refused.Fault.Error,
				"Correct the address, or the form, and try again.",
			}
		case http.StatusServiceUnavailable:
			if refused.Fault.Error != "" {
				return &pageError{
					http.StatusServiceUnavailable, "epd can't answer now: " + refused.Fault.Error,
					"Load the page again in a moment.",
				}
			}
		}
	}
	s.options.Log.Warn("a page can't be shown", "path", r.URL.Path, "error", err)
	if errors.Is(err, context.DeadlineExceeded) {
		return &pageError{
			http.StatusServiceUnavailable, "epd took too long to answer.",
			"Load the page again in a moment; epd's log says more.",
		}
	}
	return &pageError{
		http.StatusInternalServerError, "Something went wrong on the way to this page.",
		"Load the page again; epd's log says what it was.",
	}
}

// titleOf returns the heading of a page that says what is wrong.
func titleOf(status int) string {
	switch status {
	case http.StatusNotFound:
		return "Not found"
	case http.StatusForbidden:
		return "Not allowed"
	case http.StatusBadRequest, http.StatusRequestURITooLong:
		return "Not understood"
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return "Not now"
	case http.StatusMisdirectedRequest:
		return "Not here"
	}
	return "An error"
}

// isRefused reports whether something isn't there, or not for the viewer.
func isRefused(err error) bool {
	refused, ok := errors.AsType[*epdapi.RefusedError](err)
	return ok && (refused.Status == http.StatusNotFound || refused.Status == http.StatusForbidden ||
		refused.Status == http.StatusMethodNotAllowed)
}

// isUnavailable reports whether epd can't say something now.
func isUnavailable(err error) bool {
	refused, ok := errors.AsType[*epdapi.RefusedError](err)
	return ok && refused.Status == http.StatusServiceUnavailable
}
