// Package steer moves Slurm's levers on a live queue: jobs with a deadline are
// put before others by Nice, frugal nodes are preferred by Weight, idle nodes
// are powered down, and users are told of time limits that would do.
//
// [NewPlan] says, from what Slurm shows, which values ought to be in force. A
// [Steerer] brings them about, a few changes at a time. What it is about to
// change is on disk before it changes it, so that everything can be taken back
// whenever it ends: [Steerer.UndoAll]. What somebody else changes meanwhile is
// theirs.
package steer
