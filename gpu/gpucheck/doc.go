// Package gpucheck tries a machine's GPUs: what their driver tells, how long calls take, what
// an idle GPU draws, how that compares with what is known of the model, and, if it may, whether a lock
// holds, outlives the process that set it, and is given back. It makes a report that says
// nothing of the machine's name, its users or the boards' numbers.
package gpucheck
