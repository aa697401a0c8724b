package web

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/internal/web/login"
)

// cookieName is that of the session. With TLS no other host and no plain page
// can set it. Browsers keep cookies by host alone, so that the port is in the name:
// logins at several epds of a host, or by several tunnels, don't end each other.
func (s *Site) cookieName(r *http.Request) string {
	name := "epd_session"
	if s.options.TLS {
		name = "__Host-" + name
	}
	if port := portOf(r); port != "" {
		name += "_" + port
	}
	return name
}

// portOf returns the port that the browser names, else that epd was reached at; empty
// where there is none.
func portOf(r *http.Request) string {
	at := []string{r.Host}
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		at = append(at, local.String())
	}
	for _, address := range at {
		if _, port, err := net.SplitHostPort(address); err == nil {
			if n, err := strconv.ParseUint(port, 10, 16); err == nil {
				return strconv.FormatUint(n, 10)
			}
		}
	}
	return ""
}

// cookie returns the session's; an empty one takes it back.
func (s *Site) cookie(r *http.Request, value string) *http.Cookie {
	c := &http.Cookie{Name: s.cookieName(r), Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: s.options.TLS} //nolint:gosec // without TLS there is no secure way
	if value == "" {
		c.MaxAge = -1
	} else {
		c.MaxAge = int(login.SessionLifetime / time.Second)
	}
	return c
}

// loginPage asks for a token, where people log in.
func (s *Site) loginPage(w http.ResponseWriter, r *http.Request) {
	if v := login.ViewerOf(r.Context()); v.Role > login.Anonymous || !isPortRequest(r.Context()) {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	s.showLogin(w, r, http.StatusOK, nil)
}

// redirectToLogin sends a viewer to the login, and back to the page afterwards.
func redirectToLogin(w http.ResponseWriter, r *http.Request) {
	next := "/"
	if r.Method == http.MethodGet {
		next = r.URL.RequestURI()
	}
	target := "/login"
	if next != "/" {
		target += "?" + url.Values{"next": {next}}.Encode()
	}
	http.Redirect(w, r, target, http.StatusSeeOther)
}

// showLogin is the login, with what was wrong with the last one.
func (s *Site) showLogin(w http.ResponseWriter, r *http.Request, status int, wrong *page.Notice) {
	view := &View{Title: "Log in", Still: true}
	section := Section{ID: "login", Still: true}
	if wrong != nil {
		section.Parts = append(section.Parts, wrong)
	}
	next, settings := localPath(r.FormValue("next")), s.options.Settings()
	if s.hasIssuer() {
		section.Parts = append(section.Parts, renderTemplate("button", map[string]any{
			"Href": issuerPath + "?" + url.Values{"next": {next}}.Encode(), "Text": "Log in with the site's account",
		}))
	}
	switch {
	case s.tokens().Len() == 0 && s.hasIssuer():
	case s.tokens().Len() == 0 && settings.ProxyHeader != "":
		section.Parts = append(section.Parts, page.Text("Open these pages by the site's web server: it knows who "+
			"you are."))
	case s.tokens().Len() == 0:
		section.Parts = append(section.Parts, &page.Notice{
			Kind: page.Warn, Text: "Nobody can log in here: epd has no token file, or one that it can't " +
				"use. epd's log says which.",
		})
	default:
		view.Lead = "With a token from the administrator, who has them in epd's token file."
		section.Parts = append(section.Parts, renderTemplate("login", map[string]any{
			"Hidden": s.forms.hidden(login.ViewerOf(r.Context())), "Next": next,
		}))
	}
	section.Parts = append(section.Parts,
		page.Text("Without one: on the head node, epd's socket shows you your own jobs. ssh -L "+
			"8080:/run/epplan/submit.sock HOST, then open http://localhost:8080/ here."))
	view.Sections = []Section{section}
	s.write(w, r, status, view)
}

func (s *Site) login(w http.ResponseWriter, r *http.Request) {
	v := login.ViewerOf(r.Context())
	if !isPortRequest(r.Context()) {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	if !s.checkFormToken(w, r, v) {
		return
	}
	now, from := s.options.Now(), login.OriginsOf(r)
	// A right token passes however many wrong ones came: else whoever sends these locks everybody out.
	t := s.tokens().Find(r.PostFormValue("token"))
	if wait := s.failures.Wait(from, now); t == nil && wait > 0 {
		seconds := int(math.Ceil(wait.Seconds()))
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
		s.showLogin(w, r, http.StatusTooManyRequests, &page.Notice{
			Kind: page.Bad, Text: fmt.Sprintf("Too many logins failed. Try again in %d s.", seconds),
		})
		return
	}
	if t == nil {
		s.failures.Record(from, now)
		s.options.Log.Warn("a login failed", "from", from[0].Name)
		s.showLogin(w, r, http.StatusForbidden, &page.Notice{
			Kind: page.Bad,
			Text: "That token isn't one of this epd's. Check that nothing is missing at its ends.",
		})
		return
	}
	if c, err := r.Cookie(s.cookieName(r)); err == nil {
		s.sessions.End(c.Value)
	}
	http.SetCookie(w, s.cookie(r, s.sessions.Begin(t, now)))
	s.options.Log.Info("logged in", "name", t.Name, "role", t.Role.String(), "from", from[0].Name)
	http.Redirect(w, r, localPath(r.PostFormValue("next")), http.StatusSeeOther) //nolint:gosec // of this site alone
}

// issuerPath leads to the site's issuer.
const issuerPath = "/login/oidc"

// hasIssuer reports whether people may log in at the site's issuer.
func (s *Site) hasIssuer() bool {
	return s.options.Issuer != nil && s.options.Settings().OIDC.Issuer != ""
}

// atIssuer is the login of a site's viewers at the site's issuer.
type atIssuer struct{ site *Site }

// attemptCookie returns the cookie of an attempt to log in at the issuer, which sends the
// browser back: a strict one wouldn't come along.
func (a atIssuer) attemptCookie(r *http.Request, attempt string) *http.Cookie {
	c := a.site.cookie(r, attempt) //nolint:gosec // as the session's, and lax
	c.Name, c.SameSite = c.Name+"_oidc", http.SameSiteLaxMode
	if attempt != "" {
		c.MaxAge = int(attemptLifetime / time.Second)
	}
	return c
}

// attemptLifetime is for how long browsers keep an attempt, and maxNext how long the address
// may be to which it leads: cookies have 4096 bytes.
const (
	attemptLifetime = 10 * time.Minute
	maxNext         = 1024
)

// begin sends a browser to the site's issuer.
func (a atIssuer) begin(w http.ResponseWriter, r *http.Request) {
	s := a.site
	v := login.ViewerOf(r.Context())
	if v.Role > login.Anonymous || !isPortRequest(r.Context()) || !s.hasIssuer() {
		http.Redirect(w, r, "/login", http.StatusSeeOther)
		return
	}
	next := localPath(r.FormValue("next"))
	if len(next) > maxNext || strings.HasPrefix(next, "/login") ||
		strings.ContainsFunc(next, func(c rune) bool { return c <= ' ' || c >= 0x7f }) { // it goes into a header
		next = "/"
	}
	back := s.options.Settings().OIDC.RedirectURL
	if back == "" {
		back = "http"
		if s.options.TLS {
			back = "https"
		}
		back += "://" + r.Host + config.OIDCCallback
	}
	address, attempt, err := s.options.Issuer.Begin(r.Context(), back, next)
	if err != nil {
		a.showFailure(w, r, err)
		return
	}
	http.SetCookie(w, a.attemptCookie(r, attempt))
	http.Redirect(w, r, address, http.StatusSeeOther) //nolint:gosec // the issuer's, as the configuration names it
}

// finish begins a session of somebody whom the issuer sends back. The browser takes
// the session's strict cookie along from a page of this site alone, so that there is one.
func (a atIssuer) finish(w http.ResponseWriter, r *http.Request) {
	s := a.site
	if !isPortRequest(r.Context()) || !s.hasIssuer() {
		http.Redirect(w, r, "/login", http.StatusSeeOther)
		return
	}
	attempt := ""
	if c, err := r.Cookie(a.attemptCookie(r, "").Name); err == nil {
		attempt = c.Value
	}
	http.SetCookie(w, a.attemptCookie(r, ""))
	proved, err := s.options.Issuer.Finish(r.Context(), attempt, r.URL.Query())
	if err != nil {
		a.showFailure(w, r, err)
		return
	}
	if c, err := r.Cookie(s.cookieName(r)); err == nil {
		s.sessions.End(c.Value)
	}
	now, settings := s.options.Now(), s.options.Settings()
	cookie := s.sessions.BeginNamed(proved, now)
	v, _ := s.sessions.Viewer(cookie, &settings, s.tokens(), s.options.Accounts, now, false)
	http.SetCookie(w, s.cookie(r, cookie))
	s.options.Log.Info("logged in", "name", proved.Name, "role", v.Role.String(),
		"from", login.OriginsOf(r)[0].Name, "issuer", proved.Issuer)
	next := localPath(proved.Next)
	w.Header().Set("Refresh", "0; url="+next)
	s.write(w, r.WithContext(login.WithViewer(r.Context(), v)), http.StatusOK, &View{
		Title: "Logged in", Still: true, Sections: []Section{{ID: "login", Still: true, Parts: []any{
			renderTemplate("button", map[string]any{"Href": next, "Text": "Go on"}),
		}}},
	})
}

// showFailure shows why a login at the issuer came to nothing, and how else to log in.
func (a atIssuer) showFailure(w http.ResponseWriter, r *http.Request, err error) {
	s := a.site
	wrong, ok := errors.AsType[*login.IssuerError](err)
	if !ok {
		s.showError(w, r, err)
		return
	}
	now, from := s.options.Now(), login.OriginsOf(r)
	if s.failures.Wait(from, now) == 0 { // whoever sends many doesn't fill the log
		s.failures.Record(from, now)
		s.options.Log.Warn("a login at the issuer failed", "from", from[0].Name, "error", err)
	}
	s.showLogin(w, r, wrong.Status, &page.Notice{Kind: page.Bad, Text: wrong.Text})
}

func (s *Site) logout(w http.ResponseWriter, r *http.Request) {
	if !s.checkFormToken(w, r, login.ViewerOf(r.Context())) {
		return
	}
	if c, err := r.Cookie(s.cookieName(r)); err == nil {
		s.sessions.End(c.Value)
	}
	http.SetCookie(w, s.cookie(r, ""))
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

// localPath returns an address of this site, or the overview.
func localPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(next, "/") ||
		strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	return next
}
