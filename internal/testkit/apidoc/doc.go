// Package apidoc describes epd's API: which paths there are, who may ask, what
// is sent and answered. From that list and the messages' own types and comments
// it writes docs/reference/openapi.json and api.md; tests hold the list against
// the paths that epd serves. Only tests import it.
package apidoc
