// Package place decides where an offered task runs: on which node, on which of
// its GPUs, from when on.
//
// Every method appends tasks to the end of a GPU's queue. [Scan] is the general
// one: it looks at each node that is on and lets a [Rule] choose. The others are
// indexes that find what a scan would, faster, for tasks of one GPU. [LateBinding] and
// [Replan] also decide which task is next.
package place
