// Package replay tells what past jobs would have cost by other policies: it reads a log, plans its jobs again
// in draws of how workloads respond to clocks, and reports energies, savings and waits with their intervals.
package replay
