// Package sharing is what happens on GPUs that several tasks use at once: how
// power and run times follow a GPU's frequency ([Physics]), what it costs in
// time to share a GPU ([Contention], [Curve]), and who is on which GPU ([State]).
//
// It decides nothing. The planner's engine plays tasks on shared GPUs by it;
// rules that choose GPUs and clocks, such as those of planner/share, see
// the GPUs as a [State]. check.Plan and share.Evaluate compute the same
// from the fields of [Physics] and [Curve] by code of their own.
package sharing
