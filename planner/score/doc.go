// Package score judges nodes for a task: the placement scores of the PWR+FGD
// paper, the rivals that it measures against, and ours.
//
// A [Scorer] judges one node from its state alone. A [Rule] mixes scorers by
// weight. Two choosers apply a rule to a cluster: [FullScan] looks at every node
// for every task and is the clear statement of what is chosen; [Index]
// remembers scores until a node changes and finds the same node faster.
package score
