// Package improve reworks finished plans of tasks that are all known, those that arrive
// later among them: beyond the papers, it spends computation to close the gap between a plan
// and the lower bound.
//
// [Align] rebuilds the schedule of one-GPU tasks on unlimited or plentiful
// nodes so that all GPUs of a node end together, with nothing idle, at times
// close to what each task wants. [Retune] is the general pass: it searches over lists
// of tasks, one a node, and their clocks. Both return a plan that leaves no more tasks
// late than the one they were given, and costs no more unless fewer are. [Hindsight] says
// what an online plan could have been.
//
// Both price time: a second more or less on a GPU changes the run energy of its
// tasks at their marginal energies λ = dE/dt, and idling costs the idle power.
package improve
