// Package pooled predicts how a workload responds to clocks from one to three
// measured settings and from workloads that were measured before.
//
// The logarithms of run time and power at all settings are taken as jointly
// normal. Their mean and covariance come from other workloads, by empirical
// Bayes at two levels:
//
//   - [Curves] describes each workload by two quadratics in the logarithms of
//     the clocks (the log-quadratic form of dvfsmodel) whose coefficients have a
//     common mean and covariance. They hold at clocks that nobody measured.
//   - [Prior] is for a table of settings: the sample covariance of the workloads,
//     shrunk towards what their curves and a residual say.
//
// A [Belief] is either of them after some settings were measured. How long a run
// takes as a whole, and what it draws as a whole, says little about how it
// responds, and is left open.
//
// [Belief.Best] takes the setting of least expected energy, [Belief.NextProbe] the
// one to measure next: the one after which the least expected energy will be
// lowest (the knowledge gradient).
//
// The package is pure: no clocks, no files, no random numbers.
package pooled
