// Package improve reworks finished offline plans: beyond the papers, it spends
// computation to close the gap between a plan and the lower bound.
//
// [Align] rebuilds the schedule of one-GPU tasks on unlimited or plentiful
// nodes so that all GPUs of a node end together, with nothing idle, at times
// close to what each task wants. [Retune] is the general pass: it moves
// single tasks and changes clocks, one step at a time, where that saves energy.
// Both return a plan that costs no more than the one they were given.
//
// Both price time: a second more or less on a GPU changes the run energy of its
// tasks at their marginal energies λ = dE/dt, and idling costs the idle power.
package improve
