// Package replay compares the GPUs that the jobs of a log held at once with those of the cluster
// on which the log is played again ([PeakUses]).
package replay
