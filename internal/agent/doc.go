// Package agent is the node side of epd: it locks the clocks of a job's GPUs,
// watches them while the job runs, and gives them back.
//
// An [Agent] holds three things that agree with each other at every moment, or
// can be made to agree after a crash at any moment:
//
//   - the open runs, each with what it wants of its GPUs, one file per run;
//   - the journal, one file per GPU whose controls ([gpu.Control]) this agent may have
//     set, written before one is touched and removed after it was given back;
//   - the GPUs themselves.
//
// What a GPU should be at follows from its open runs alone: the fastest of
// what they want of each control, and default clocks as soon as one of them
// wants those or anything about it went wrong. Every change of a run ends in
// its GPUs being reconciled with that, so that an Epilog, a failed Prolog, the
// guard and a restore are the same step. Nothing is ever locked that isn't in
// the journal, and a restart replays the journal before anything else.
//
// A run may want other clocks from moment to moment: an [live.Adaptation] says between
// which ones a clockStepper, which sees nothing but times and utilisations, steps it.
//
// Each part has a type of its own, with its state and its lock. A [GPUSet] finds the GPUs and
// calls their drivers. A [RunSet] has the runs with their files, and says what they want. The
// holder has the journal: it sets controls, gives them back, and replays what the journal
// names, whoever wants it. The reconciler has the holder do what the runs want. The admission
// says at which settings GPUs may be locked at all; the poller reads GPUs for the runs on
// them; the adapter steps clocks. The agent opens, guards and closes runs with them.
//
// Time is the wall clock of package time; the file system, the GPUs and what
// Slurm says are handed in.
package agent
