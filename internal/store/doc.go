// Package store keeps the records of epd in SQLite: one writer that commits
// what many callers hand in as one transaction, and a pool of readers.
//
// A write returns after its commit is on disk (synchronous=FULL), so that an
// agent may forget what was acknowledged. Outcomes are idempotent: their key is
// (cluster, node, run id), a repeat changes nothing, and one that differs is kept
// aside as a conflict.
//
// What goes wrong comes back as one of a few errors that callers can tell
// apart: [ErrBusy], [ErrFull], [ErrCorrupt], [ErrSchema], [ErrClosed],
// [ErrNotFound]. After the first three nothing was written and the caller
// still has what it handed in.
//
// schema.sql is what a new database is made by; migrations bring those of earlier
// releases to the same.
//
// docs/records.md describes the tables. SQLite needs cgo; without it the
// package compiles, and Open says so.
package store
