// Package predict says before a job starts how long it will run, how much energy it
// will use and at what power, from the jobs that ended before.
//
// A [Forecaster] is told of jobs in the order in which they are submitted and end. It
// remembers what jobs took that are alike in some respect (memory), makes guesses
// from that and from trees fitted to it (guess), takes the guess that was best in
// situations like this one (ladder), and puts an interval around it (calibration).
// All of it works on logarithms. [Replay] plays job tables through a forecaster so
// that nothing is predicted from what hadn't ended. docs/prediction.md has the
// figures. Pure.
package predict
