// Package metrics shows what epd knows as Prometheus metrics.
//
// It asks others for snapshots when it is scraped, and counts the few things
// that only happen: decisions, ended runs, errors, the time of requests. It
// knows nothing of sockets, Slurm or devices. docs/metrics.md lists what there
// is; a test holds the list against the registry.
//
// No label names a job or a user. Partitions and GPU models come from others:
// their names are cleaned, and bounded in number.
package metrics
