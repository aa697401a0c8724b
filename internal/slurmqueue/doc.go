// Package slurmqueue makes something to plan of Slurm's queue as epd shows it:
// the batch that waits and the cluster, for epplan plan --from-slurm, and the
// order in which a policy would start what waits beside what runs, for the
// levers.
package slurmqueue
