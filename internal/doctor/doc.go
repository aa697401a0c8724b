// Package doctor looks at a machine of a Slurm cluster and says what keeps
// epplan from working there: each finding with why it matters and how to mend
// it. It only looks: nothing is changed, no clock is tried, no job is run.
//
// A [Check] is a row of [Checks]: what it looks at, the faults that it can
// find, and the function that looks. All that lies outside comes in as a
// [Site]. What can't be found out is [Unknown] with the reason, never [OK].
package doctor
