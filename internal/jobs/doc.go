// Package jobs follows what Slurm says of a cluster's jobs and nodes.
//
// A [Tracker] owns the table of jobs: it lists the whole queue again and again, asks
// about one job when its start or end can't wait for the next list, and asks accounting
// about what Slurm has forgotten. An answer never replaces that to a later question, and
// where Slurm doesn't answer, what is known stays. A [Job] is a value: it is never
// changed, only replaced, so that whoever has one may keep it.
//
// How a run of a job ended is told by [Tracker.Settle]; jobs that ended without anybody
// having told of their start are recorded, as long as Slurm names them. Job ids come
// again, and jobs are requeued: runs are told apart by time, see [Run].
package jobs
