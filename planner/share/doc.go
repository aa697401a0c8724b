// Package share decides on which shared GPUs a task runs and at which clocks, by the rules of the
// CATS paper (Subramaniyan and Wang, ICS '26), as printed there and corrected, and by ours.
//
// An instance ([sharing.Instance]) is servers with GPUs and tasks with
// utilisation series, all over the same window. A [Placement] says where each task runs and at which
// frequency each GPU does; [Evaluate] says what it takes and which tasks it slows
// down more than they allow, and shares no code with what places. What a
// policy knows of the GPUs while it places is a [sharing.State].
//
// The paper's problem (eq. 6 to 14) has no limit on utilisation: any number of
// tasks whose memory fits may share a GPU. [Safe] counts what sharing costs in
// time: see [sharing.Curve].
package share
