// Package spool keeps what an agent has to tell its controller until the
// controller has acknowledged it, whatever crashes in between.
//
// An entry is a file: written, synced, renamed into place, and the folder
// synced, before [Spool.Add] returns; removed only after it was acknowledged.
// A crash at any point loses nothing that Add accepted, and at worst delivers an
// entry again, so that the receiver must know repeats by their id. What can't
// be read any more, or is refused for good, is moved into the folder aside and
// reported, and holds nothing up; what a newer epd wrote stays, is reported, and holds
// nothing up. A spool is bounded: when it is full, Add says so and what is in it stays.
//
// A folder has one owner; two spools on one folder don't know of each other.
package spool
