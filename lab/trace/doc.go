// Package trace reads and writes the laboratory's inputs: nodes, tasks and arrivals of
// clusters in the openb format of Alibaba's cluster-trace-gpu-v2023 ([ReadNodes], [ReadPods],
// [ReadArrivals]), tables of queues for two kinds of GPUs ([ReadKnapsack]), logs of
// utilisation ([ReadUtilisation]) and measurements of tasks that share a GPU ([ReadCoRuns]).
package trace
