// Package decide chooses the clocks of the GPUs that a run of a job gets on a node, and
// keeps what was decided.
//
// A [Decider] owns the decisions of open runs, the lot that puts jobs into arms and has
// some explore, the clocks that agents named of GPU models, and the queue of jobs and
// decisions that wait to be written. Asked again for the same run it gives the same
// answer, also after a restart, and the nodes of one run get the same clocks.
//
// A decision is made in memory from what is known of the job ([jobs.Tracker]), the model
// of its workload ([learn.Learner]) and the settings in force, and written behind: waiting
// for a disk is no part of a Prolog. When records can't be written, jobs are left at
// default clocks, as they are whatever else is wrong; the reason says so.
package decide
