// Package predict says before a job starts how long it will run, how much energy it
// will use and at what power, from the jobs that ended before.
//
// A [Forecaster] is told of jobs in the order in which they are submitted and end. It
// remembers what jobs took that are alike in some respect (memory), makes guesses
// from that and from what is fitted to it (trees, effects, deviations), weighs them by
// how good they were in situations like this one (guessWeighting), and puts an interval
// around what they come to (calibration).
// All of it works on logarithms. [Replay] plays job tables through a forecaster so
// that nothing is predicted from what hadn't ended. docs/prediction.md has the
// figures. Pure.
package predict
