// Package colocate tells which jobs may share a GPU: what workloads were seen to do
// over time, and which nodes suit a pending job that asks for a part of a GPU.
//
// [Learn] makes the recorded profiles of a workload's runs into one [UseProfile] with
// intervals, or says why it isn't known. [RankNodes] puts nodes in the order in which
// a job is best put on their shared GPUs: where everybody keeps the allowed
// slowdown ([sharing.Physics.LowestLevel]) with the least rise in power, and
// among those where utilisations correlate least (CATS, eq. 15). What isn't
// known is never put beside another, and neither is a job on a GPU that did
// other lately, by samples of it, than the profiles of its jobs say.
//
// The package asks nobody anything: what Slurm shows, profiles and rules are
// handed in, and nothing depends on the time of day.
package colocate
