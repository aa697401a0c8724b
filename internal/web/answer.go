package web

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/slurmqueue"
	"github.com/epplan/epplan/internal/web/login"
)

// Options are what a site is made of.
type Options struct {
	// Source answers for a viewer, and does what the viewer may.
	Source func(login.Viewer) (Source, Administration)
	// API is the JSON interface for a viewer, of which a port gets what is read;
	// nil: none. At sockets it is served beside the pages.
	API func(login.Viewer) http.Handler
	// Settings are the [web] keys in force.
	Settings func() config.Web
	// Terms are what plans of the queue go by; nil: those of the default
	// configuration.
	Terms func() *slurmqueue.PlanTerms
	// Tokens are who may log in at a port, read anew where the file changed; nil:
	// nobody may.
	Tokens func() (*login.Tokens, error)
	// Accounts finds users by the names that the site's proxy passes on; nil: none is known.
	Accounts login.Accounts
	// Issuer has people log in where the settings name one; nil: none does.
	Issuer Issuer
	// TLS reports whether the port is reached by TLS, so that cookies are sent by it
	// alone.
	TLS bool
	// Proved hears of each request at a port that has a session; nil: nobody does.
	Proved  func(*http.Request)
	Version string
	Now     func() time.Time // nil: time.Now
	Log     *slog.Logger     // nil: nothing is logged
}

// Site is the pages. Its methods may be used by several goroutines.
type Site struct {
	options      Options
	warnOfHeader sync.Once // that a proxy's header came from elsewhere
	warnOfProxy  sync.Once // that a proxy sent a name that can't be
	forms        *formKeys
	sessions     login.Sessions
	failures     login.Failures
	pageSlots    chan struct{} // of pages that are made
	planWaitlist *planWaitlist
	mux          *http.ServeMux
	pages        []pageRoute // in the order of the navigation
}

// Bounds of requests.
const (
	maxForm       = 64 << 10
	maxURL        = 4096
	turnTimeout   = 3 * time.Second // for a page's turn
	pageTimeout   = 8 * time.Second // for a page
	actionTimeout = 15 * time.Second
)

// Socket serves the pages where the kernel says who asks: who tells who that is.
func (s *Site) Socket(who func(*http.Request) login.Viewer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.serve(w, r.WithContext(login.WithViewer(r.Context(), who(r))))
	})
}

// Network serves the pages at a port, to those who log in.
func (s *Site) Network() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := s.networkViewer(r)
		r = r.WithContext(markPortRequest(login.WithViewer(r.Context(), v)))
		if err != nil {
			setSecurityHeaders(w.Header())
			s.warnOfProxy.Do(func() { s.options.Log.Warn("requests of the proxy are refused", "error", err) })
			s.showError(w, r, &pageError{
				http.StatusForbidden, "The site's web server sent a name that can't be: " + err.Error() + ".",
				"The administrator can correct what it passes on.",
			})
			return
		}
		if v.Role > login.Anonymous {
			s.options.Proved(r)
		}
		if strings.HasPrefix(r.URL.Path, "/v1/") && s.options.API != nil &&
			isKnownHost(r.Host, s.options.Settings().Hosts) {
			s.serveAPI(w, r, v)
			return
		}
		s.serve(w, r)
	})
}

// networkViewer returns who asks at a port: by the site's proxy, or else by a session. The
// error is why the proxy's request must be refused.
func (s *Site) networkViewer(r *http.Request) (login.Viewer, error) {
	nobody, settings := login.Viewer{UID: -1}, s.options.Settings()
	name, err := login.ProxyName(&settings, r)
	switch {
	case errors.Is(err, login.ErrNotProxy):
		s.warnOfHeader.Do(func() {
			s.options.Log.Warn("a header with a user's name was ignored; further ones are, too",
				"header", settings.ProxyHeader, "error", err)
		})
	case err != nil:
		return nobody, err
	case name != "":
		v := login.NamedViewer(&settings, name, nil, s.options.Accounts)
		v.ByProxy = true
		return v, nil
	}
	if c, err := r.Cookie(s.cookieName(r)); err == nil {
		if v, ok := s.sessions.Viewer(c.Value, &settings, s.tokens(), s.options.Accounts, s.options.Now(),
			r.Header.Get(liveHeader) != ""); ok {
			return v, nil
		}
	}
	return nobody, nil
}

// serve answers a request whose viewer is known.
func (s *Site) serve(w http.ResponseWriter, r *http.Request) {
	setSecurityHeaders(w.Header())
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	switch {
	case len(r.RequestURI) > maxURL:
		s.showError(w, r, &pageError{status: http.StatusRequestURITooLong, text: "The address is too long."})
	case !isKnownHost(r.Host, s.options.Settings().Hosts):
		s.showError(w, r, &pageError{
			status: http.StatusMisdirectedRequest, text: "This machine isn't known by that name.",
			hint: "The administrator can add it to hosts in [web].",
		})
	case http.NewCrossOriginProtection().Check(r) != nil:
		s.showError(w, r, &pageError{
			status: http.StatusForbidden, text: "A page of another site sent this.",
			hint: "Open this site's own page and try again.",
		})
	default:
		s.mux.ServeHTTP(w, r)
	}
}

// tokens returns who may log in now. Why the file can't be used is logged by whoever
// reads it.
func (s *Site) tokens() *login.Tokens {
	if s.options.Tokens == nil {
		return nil
	}
	t, err := s.options.Tokens()
	if err != nil {
		return nil
	}
	return t
}

// acquireTurn waits until a page may be made; it is false when others take too long.
func (s *Site) acquireTurn(ctx context.Context) (done func(), ok bool) {
	timer := time.NewTimer(turnTimeout)
	defer timer.Stop()
	select {
	case s.pageSlots <- struct{}{}:
		return func() { <-s.pageSlots }, true
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil, false
}

// health says that pages are served. It is for programs, and tells nothing else.
func (s *Site) health(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n"))
}

type portKey struct{}

// markPortRequest marks requests of a port, where people log in.
func markPortRequest(ctx context.Context) context.Context {
	return context.WithValue(ctx, portKey{}, true)
}

// isPortRequest reports whether a request came by a port.
func isPortRequest(ctx context.Context) bool { return ctx.Value(portKey{}) != nil }

// responseRecorder keeps what a handler answers.
type responseRecorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header returns the answer's header.
func (a *responseRecorder) Header() http.Header { return a.header }

// WriteHeader keeps the status.
func (a *responseRecorder) WriteHeader(status int) { a.status = status }

// Write keeps a part of the body.
func (a *responseRecorder) Write(p []byte) (int, error) { return a.body.Write(p) }

// serveBuffered has an answer made in a turn, and sends it when the turn is done: one
// that nobody fetches holds up nobody else.
func serveBuffered(w http.ResponseWriter, done func(), serve func(http.ResponseWriter)) {
	a := &responseRecorder{header: w.Header(), status: http.StatusOK}
	func() {
		defer done()
		serve(a)
	}()
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body.Bytes()) // whoever asked may have gone
}
