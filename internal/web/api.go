package web

import (
	"net/http"

	"github.com/epplan/epplan/internal/web/login"
)

// serveAPI answers what is read of the JSON interface at a port, to those who are
// logged in.
func (s *Site) serveAPI(w http.ResponseWriter, r *http.Request, v login.Viewer) {
	setSecurityHeaders(w.Header())
	switch {
	case r.Method != http.MethodGet:
		http.Error(w, `{"error":"only reading is possible here: use epd's socket"}`,
			http.StatusMethodNotAllowed)
	case v.Role < login.User:
		http.Error(w, `{"error":"nobody is logged in"}`, http.StatusForbidden)
	default:
		done, ok := s.acquireTurn(r.Context())
		if !ok {
			http.Error(w, `{"error":"others ask too much now: try again"}`, http.StatusServiceUnavailable)
			return
		}
		serveBuffered(w, done, func(w http.ResponseWriter) { s.options.API(v).ServeHTTP(w, r) })
	}
}
