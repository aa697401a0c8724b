// Package control is the controller's side of epd: it takes submissions,
// decides at which clocks a job's GPUs run, records what came of it, and learns
// from that.
//
// A decision is made in memory from what is known of the job, the model of its
// workload and the settings in force, and written behind: waiting for a disk is
// no part of a Prolog. When records can't be written, jobs are left at default
// clocks. Whatever is wrong, the answer is default clocks and a reason, never
// an error that a hook would have to deal with, except for a request that isn't
// one.
//
// What pages and commands ask is answered by package query, of which a controller holds
// one ([Controller.Queries]); [Controller.Handler] says it in JSON.
//
// Nothing that a user writes is trusted for more than that user's own job.
package control
