package web

import (
	"net"
	"net/http"
	"strings"
)

// contentPolicy is what pages may load: nothing from elsewhere, no script and no style
// inside of a page.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// setSecurityHeaders sets the headers of every answer.
func setSecurityHeaders(h http.Header) {
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// Guard keeps other sites' pages away from what is served at a socket: a browser
// that reaches it through a tunnel would send requests for any page that it has
// open. Requests that change something must not come from another site, and the
// name of the host must be one of this machine's, or one of hosts.
func Guard(h http.Handler, hosts func() []string) http.Handler {
	cross := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !isKnownHost(r.Host, hosts()):
			http.Error(w, `{"error":"the name of this host isn't known here: see [web] hosts"}`,
				http.StatusMisdirectedRequest)
		case cross.Check(r) != nil:
			http.Error(w, `{"error":"a page of another site sent this"}`, http.StatusForbidden)
		default:
			h.ServeHTTP(w, r)
		}
	})
}

// programHosts are names that programs use at a socket, where the name means
// nothing. None has a dot: no site that a browser finds is called so.
var programHosts = []string{"", "epd", "epplan"}

// isKnownHost reports whether a request's host is this machine, by a name that only
// this machine has, or one that the administrator named.
func isKnownHost(host string, named []string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.ToLower(strings.Trim(name, "[]")), ".")
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	if ip := net.ParseIP(name); ip != nil && ip.IsLoopback() {
		return true
	}
	for _, p := range programHosts {
		if name == p && host == p {
			return true
		}
	}
	for _, n := range named {
		if strings.EqualFold(n, host) || strings.EqualFold(n, name) {
			return true
		}
	}
	return false
}
