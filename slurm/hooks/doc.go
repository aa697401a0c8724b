// Package hooks holds the protocol of Slurm's hooks: what job_submit.lua sends of a job as it is submitted, what
// Prolog and Epilog send of one that starts or ends, by their environment, and the options in batch scripts.
// All of it is hostile text, bounded and checked here.
package hooks
