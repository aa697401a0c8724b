// Package powerbudget brings a finished plan of jobs that are all known within a budget of watts: it starts
// jobs later, at other clocks and on other GPUs of the plan's nodes, and never lets GPUs, running and idle,
// hosts and sleeping nodes together take more than the budget at any moment. It is pure.
package powerbudget
