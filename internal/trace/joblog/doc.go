// Package joblog reads logs of jobs that have ended, of any length in constant
// memory: what sacct prints, as text and as JSON, the Standard Workload Format
// of the Parallel Workloads Archive, and job tables as epplan predict learns
// from; and it writes job tables.
//
// Logs have lines that make no sense. Those are left out, counted by what is
// wrong with them, and the first of each kind are named by file and line
// ([Tally]); a strict reader refuses at the first one.
package joblog
