package slurm

// StepUsage adds up what accounting says of a job's steps. The step extern spans
// the whole job on all its nodes, batch the whole job on the first one, and the
// others run inside of it, so that their energies can't just be added.
type StepUsage struct {
	extern, batch, others float64 // joules
	percent, seconds      float64 // of utilisation: the mean, times the seconds; and the seconds
}

// Add takes one step's energy in joules, its seconds, and TRESUsageInAve. What
// isn't known is 0 or nil.
func (u *StepUsage) Add(step string, joules, seconds float64, usage TRES) {
	switch step {
	case "extern":
		u.extern += joules
	case "batch":
		u.batch += joules
	default:
		u.others += joules
	}
	if percent, ok := usage["gres/gpuutil"]; ok && percent <= 100 {
		u.percent += percent * seconds
		u.seconds += seconds
	}
}

// Energy is the job's, in joules; 0 when no step has one.
func (u *StepUsage) Energy() float64 {
	if u.extern > 0 {
		return u.extern
	}
	return max(u.batch, u.others)
}

// Utilisation is the mean over the job's steps of how busy their GPUs were, 0 to
// 1; 0 when nothing was measured.
func (u *StepUsage) Utilisation() float64 {
	if u.seconds == 0 {
		return 0
	}
	return u.percent / 100 / u.seconds
}
