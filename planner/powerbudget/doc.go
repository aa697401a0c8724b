// Package powerbudget brings a finished plan of jobs that are all known within a budget of watts: it starts
// jobs later and at other clocks, each on the GPUs that it has, and never lets GPUs, running and idle, hosts
// and sleeping nodes together take more than the budget at any moment. It is pure.
package powerbudget
