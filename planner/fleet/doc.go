// Package fleet keeps what is left of a cluster's nodes while tasks come and
// go: CPUs, memory and the shares of each GPU. On that state stand the power
// that a node draws ([Node.Power], PWR+FGD paper, equations 1 and 2) and the
// GPU capacity that a workload could not use ([Fragmentation], equation 4).
//
// Quantities are whole numbers, milli-vCPU, MiB and milli-GPU, so that placing
// a task and releasing it again restores a state exactly. Placing and
// releasing cost the same for any number of nodes.
package fleet
