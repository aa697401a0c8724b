// Package nodepower measures what a node uses beside its GPUs, by the energy
// counters of its CPUs and their memory (RAPL, which Linux shows below
// /sys/class/powercap). Fans, disks, network and the losses of power supplies
// aren't in it.
package nodepower
