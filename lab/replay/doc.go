// Package replay runs streams of tasks against a cluster: inflation, in which
// tasks arrive one by one, are placed at once or dropped for good, and never
// leave, so that the load only grows (PWR+FGD paper, section VI;
// data/openb/SEMANTICS.md, section 2).
//
// [Inflate] runs a [Stream] and tells observers what became of each arrival.
// Observers make of it the paper's curves ([Sampler]), values at fixed loads
// ([LoadGauge]), or a list of decisions. [Draw] makes streams from a list of tasks.
package replay
