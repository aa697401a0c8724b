package report

import (
	"math"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// Result is a plan with what it is measured against.
type Result struct {
	Problem  *planner.Problem
	Plan     *planner.Plan
	Baseline dvfsmodel.Joule // the batch at default clocks; 0: not known
	Bound    dvfsmodel.Joule // no schedule takes less; 0: not known
	Seed     *uint64         // of randomised passes; nil: there were none
	// Reference is the plan that the baseline is the energy of; nil: not known.
	Reference *planner.Plan
	QueueAt   time.Time // when Slurm's queue was what is planned; zero: it is no queue of Slurm's
}

// Summary is a plan in a few numbers.
type Summary struct {
	Policy     string
	Status     planner.Status
	Mode       planner.Mode
	Start      planner.StartRule
	Seed       *uint64 // nil: nothing was randomised
	JobsTotal  int     // all jobs of the batch, also those that aren't planned
	Misses     int     // planned jobs that end after their deadlines
	Infeasible int     // jobs that aren't planned
	PastDue    int     // planned jobs that keep their deadlines, if they have any, but not their due times
	Energy     dvfsmodel.Joule
	Run        dvfsmodel.Joule
	Idle       dvfsmodel.Joule
	TurnOn     dvfsmodel.Joule
	Host       dvfsmodel.Joule
	Sleep      dvfsmodel.Joule
	Baseline   dvfsmodel.Joule // 0: not known
	Bound      dvfsmodel.Joule // 0: not known
	NodesUsed  int             // nodes that run a job
	GPUsUsed   int             // GPUs that run a job
	End        float64         // when the last job ends, seconds
	MeanWait   float64         // from arrival to start, mean over planned jobs, seconds

	// Of jobs on GPUs that are shared by profile; 0 where none are.
	Shared        int     // such jobs
	SharedGPUs    int     // such GPUs
	Slowed        int     // those of the jobs that take longer than they tolerate
	WorstSlowdown float64 // the longest of them, as a multiple of its time alone at the highest clock
}

// Saving is the part of the baseline's energy that the plan doesn't take; NaN
// when the baseline isn't known.
func (s *Summary) Saving() float64 { return 1 - ratio(s.Energy, s.Baseline) }

// Gap is how far the plan is above the bound, as a fraction of the bound; NaN
// when that isn't known.
func (s *Summary) Gap() float64 { return ratio(s.Energy, s.Bound) - 1 }

// fromBound is how far the plan is from the bound and on which side of it, such as
// "3.90 %" and "above": a plan that misses deadlines may take less than any that
// keeps them.
func (s *Summary) fromBound() (part, side string) {
	if gap := s.Gap(); gap < -rounding {
		return FormatPercent(-gap), "below"
	}
	return FormatPercent(max(0, s.Gap())), "above"
}

// boundIs says what the bound is to this plan.
func (s *Summary) boundIs() string {
	if s.Gap() < -rounding {
		return "the least for keeping all deadlines"
	}
	return "which no schedule can beat"
}

// against says how the plan's energy compares with the baseline's.
func (s *Summary) against() string {
	if saved := s.Saving(); saved < 0 {
		return FormatPercent(-saved) + " more"
	}
	return FormatPercent(s.Saving()) + " less"
}

func ratio(a, b dvfsmodel.Joule) float64 {
	if !(b > 0) {
		return math.NaN()
	}
	return float64(a / b)
}

// Summarise adds up a result.
func Summarise(r *Result) Summary {
	l := &r.Plan.Ledger
	s := Summary{
		Policy: r.Plan.Policy, Status: r.Plan.Status, Mode: r.Problem.Mode, Start: r.Problem.Start, Seed: r.Seed,
		JobsTotal: len(r.Problem.Tasks), Misses: len(r.Plan.Misses), Infeasible: len(r.Plan.Unplaced),
		Energy: l.Total(), Run: l.Run, Idle: l.Idle, TurnOn: l.TurnOn, Host: l.Host, Sleep: l.Sleep,
		Baseline: r.Baseline, Bound: r.Bound,
	}
	used := make([]planner.GPUSet, len(r.Plan.Nodes))
	for i := range r.Plan.Assignments {
		if a := &r.Plan.Assignments[i]; a.Node >= 0 {
			used[a.Node] |= a.GPUs
			if t := &r.Problem.Tasks[i]; a.End > t.Due*(1+rounding) && !r.isLate(i) {
				s.PastDue++
			}
			s.End = max(s.End, a.End)
			s.MeanWait += (a.Start - r.Problem.Tasks[i].Arrival) / float64(len(r.Problem.Tasks)-len(r.Plan.Unplaced))
		}
	}
	for _, gpus := range used {
		s.GPUsUsed += gpus.Len()
		s.NodesUsed += min(1, gpus.Len())
	}
	s.addSharing(r)
	return s
}

// energies are the parts of the total, in the order of every report.
func (s *Summary) energies() []energyPart {
	return []energyPart{
		{"run", s.Run}, {"idle", s.Idle}, {"turn-on", s.TurnOn}, {"host", s.Host}, {"sleep", s.Sleep},
	}
}

type energyPart struct {
	name   string
	energy dvfsmodel.Joule
}
