// Package planner turns a batch of jobs into a schedule that uses little
// energy and breaks no deadline.
//
// A [Problem] is a cluster and its tasks, jobs joined with their models. A
// [Policy] answers the four questions of every scheduler in the literature,
// each by a stage of its own: Pick (which waiting task next), Place (which
// node and GPUs), Tune (which clocks) and Park (when an idle node sleeps);
// offline, Improve may rework the finished plan. [Solve] runs a policy over the
// problem with one discrete-event engine, offline and online alike, and
// returns a [Plan] whose [Ledger] adds up every joule.
//
// A plan can be verified by package check, which shares no code with the policies,
// and compared with what package bound proves that no schedule can beat.
//
// Times are seconds as float64. The package is pure: no clock but the plan's,
// no files, no global random numbers.
package planner
