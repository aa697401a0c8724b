// Package login knows who looks at epd's pages: viewers and their roles, the token file
// that says who may log in at a port, sessions, and how often logins may fail.
package login
