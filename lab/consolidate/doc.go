// Package consolidate solves the CATS paper's one-shot problem, which tasks share which GPUs, at
// which clocks, and which GPUs sleep: exactly ([Exact]), and by a search ([Improve]).
package consolidate
