// Package epdapi is how programs talk to epd over its sockets and its port: the paths,
// the messages that are not the hooks' own (those are in slurm/hooks), and a
// client that never waits longer than its context.
package epdapi
