// Package contention fits the curve of what sharing a GPU costs in time to measured slowdowns.
package contention
