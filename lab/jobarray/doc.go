// Package jobarray is --slurm-array: it has the many parts of a command's work done by
// package sweep, as the flags say.
package jobarray
