// Package epdapi is how programs talk to epd over its Unix socket: the paths,
// the messages that are not the hooks' own (those are in package slurm), and a
// client that never waits longer than its context.
package epdapi
