// Package inputs reads what commands need beside a batch, and has the flags for it: models of workloads, GPU
// profiles, measurements.
package inputs
