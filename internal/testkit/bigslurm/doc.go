// Package bigslurm stands in for the commands of a Slurm with very many jobs, for
// tests and measurements of what asks it: squeue and scontrol answer as those of 22.05
// and of 24.11 do, with jobs as users write them.
//
// A [Cluster] is a folder. Its jobs follow from their numbers, so that a command knows one without
// reading about the others, and each that began since has a file of its own, in place
// whole: what [Cluster.Run] has said is known to every command that starts later. Package
// standin is the program.
package bigslurm
