// Package control is the controller's side of epd: it takes submissions, has the
// clocks of runs decided, records what came of them, and answers who asks. What Slurm
// says of jobs, models of workloads, decisions and forecasts have rooms of their own:
// packages jobs, learn, decide and forecast.
//
// Whatever is wrong, the answer to a hook is default clocks and a reason, never an error
// that it would have to deal with, except for a request that isn't one.
//
// What pages and commands ask is answered by package query, of which a controller holds
// one ([Controller.Queries]); [Controller.Handler] says it in JSON.
//
// What jobs of the queue will do, which steering and advice to users go by, is a
// [Foresight].
//
// Nothing that a user writes is trusted for more than that user's own job.
package control
