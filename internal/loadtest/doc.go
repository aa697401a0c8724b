// Package loadtest holds the test of a controller under the load of a big cluster: epd
// as a process of its own with one core of Go's, a Slurm that has many jobs in memory (package
// bigslurm stands in for its commands), the agents of all nodes, which report and ask over
// the network, and munge. It needs root, for addresses that are its own, and munge.
package loadtest
