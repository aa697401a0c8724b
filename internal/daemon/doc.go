// Package daemon is epd at work on one machine: it answers Slurm's hooks and
// people over a Unix socket, has clocks decided by a [Controller] and set by
// the node's agent, and hands outcomes to the controller until they are kept.
//
// Nothing here may hurt a job: whatever goes wrong, a hook gets an answer in
// its time and the job runs at default clocks.
package daemon
