// Package liveplan has the plan of Slurm's queue that is in force: what is planned for a job
// that starts, and for how long that is believed. It doesn't know how plans are made.
package liveplan
