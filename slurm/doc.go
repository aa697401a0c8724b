// Package slurm speaks with Slurm: it reads what squeue, sinfo, scontrol and
// sacct print (22.05 to 26.x). Hooks, levers, configuration files and installing are
// packages of their own below this one.
//
// Whatever a user can write (job name, comment, working folder) is hostile
// text: it is carried, never believed. JSON is the authority for a job. The
// text forms are read so that free text can neither shift nor forge a field: a
// record that is ambiguous is refused and named, not guessed at.
//
// The package starts no process by itself. Commands run through a Runner that
// the caller hands in; ExecRunner is the one that does it for real.
package slurm
