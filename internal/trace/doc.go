// Package trace reads measurements and job logs that others recorded: tables of
// measured time and power over clock settings ([ReadDVFS]); and the nodes, tasks
// and arrivals of clusters in the openb format of Alibaba's
// cluster-trace-gpu-v2023 ([ReadNodes], [ReadPods], [ReadArrivals]), compressed
// or not ([Open]), which it also writes.
package trace
