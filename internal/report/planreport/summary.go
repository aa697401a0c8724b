package planreport

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/factors"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/bound"
	"github.com/epplan/epplan/planner/powerbudget"
)

// Result is a plan with what it is measured against.
type Result struct {
	Problem  *planner.Problem
	Plan     *planner.Plan
	Baseline dvfsmodel.Joule // the batch at default clocks; 0: not known
	Bound    bound.Bound     // no schedule takes less; zero: not known
	Seed     *uint64         // of randomised passes; nil: there were none
	// Reference is the plan that the baseline is the energy of; nil: not known.
	Reference *planner.Plan
	Easy      *planner.Plan // the batch by EASY backfilling at default clocks; nil: not known
	// The batch at the best clocks that are the same for all jobs of a GPU model; nil: not known.
	Constant *planner.Plan
	// Budget is the power budget within which the plan was brought, and Free the plan before; none: there is
	// none.
	Budget   powerbudget.Budget
	Free     *planner.Plan
	Hours    *Hours // jobs that could wait for cheap or clean hours; nil: none could
	Frontier Frontier
	Rates    *factors.Rates // what energy costs; nil: nobody says
	AlwaysOn bool           // nodes never sleep, neither in the plan nor in what it is held against
	QueueAt  time.Time      // when Slurm's queue was what is planned; zero: it is no queue of Slurm's
	// EveryWarning has each warning of the plan written, not one line for each kind.
	EveryWarning bool

	numbers []int32 // of nodes within their classes, once they were asked for
}

// Frontier is what an online plan leaves to gain. Each plan is nil where it isn't known.
type Frontier struct {
	Slower    *planner.Plan // by the same policy at Pace
	Pace      float64
	Hindsight *planner.Plan // had all jobs been known, at no longer a mean turnaround
}

// nodeNumber returns a node's number within its class.
func nodeNumber(r *Result, node int) int {
	if len(r.numbers) != len(r.Plan.Nodes) {
		r.numbers = r.Plan.NodeNumbers()
	}
	return int(r.numbers[node])
}

// Summary is a plan in a few numbers.
type Summary struct {
	Policy     string
	From       string // whose plan was improved; empty: the policy's own
	Status     planner.Status
	Mode       planner.Mode
	Start      planner.StartRule
	Seed       *uint64 // nil: nothing was randomised
	AlwaysOn   bool    // nodes never sleep, neither here nor in what the plan is held against
	Cut        bool    // the search for a better plan was stopped before it was done
	JobsTotal  int     // all jobs of the batch, also those that aren't planned
	Misses     int     // planned jobs that end after their deadlines
	Infeasible int     // jobs that aren't planned
	PastDue    int     // planned jobs that end after their due times, missed deadlines among them
	NewlyLate  []int   // those of them that the baseline ends in time, by task; none where it isn't known
	Energy     dvfsmodel.Joule
	Run        dvfsmodel.Joule
	Idle       dvfsmodel.Joule
	TurnOn     dvfsmodel.Joule
	Host       dvfsmodel.Joule
	Sleep      dvfsmodel.Joule
	Baseline   dvfsmodel.Joule // 0: not known, or of other jobs
	Unequal    bool            // the baseline leaves out other jobs than the plan
	Bound      dvfsmodel.Joule // 0: not known
	NodesUsed  int             // nodes that run a job
	GPUsUsed   int             // GPUs that run a job
	End        float64         // when the last job ends, seconds
	// Budget is the least that a power budget leaves, W, BudgetMost the most, and Free the plan without it; 0:
	// there is none.
	Budget, BudgetMost float64
	Free               *Summary
	Hours              *Hours // nil: no job could wait for cheap or clean hours
	// Peak is the most that GPUs and hosts take together, W; the energy of switching a node on isn't in it.
	Peak       float64
	Makespan   float64    // from the first arrival to the last end, seconds
	Wait       TimeSpread // from arrival to start, over planned jobs
	Turnaround TimeSpread // from arrival to end, over planned jobs
	// How many times as long as first come, first served jobs may take whose due times were implied; 0:
	// no job's was.
	MaxTurnaround float64

	// Factors are what a kilowatt-hour of the plan costs on average; zero: nobody says.
	Factors config.Factors

	Reference *Summary // first come, first served at default clocks; nil: not known
	Easy      *Summary // EASY backfilling at default clocks; nil: not known
	Constant  *Summary // the best clocks that are the same for all jobs of a GPU model; nil: not known

	Slower    *Summary // the plan by the same policy at Pace; nil: not known
	Pace      float64
	Hindsight *Summary // had all jobs been known, at no longer a mean turnaround; nil: not known
	Least     *Summary // costs least, where this plan gives a little for a shorter turnaround; or nil

	Objective      float64 // what was planned for, less is better
	ObjectiveBound float64 // 0: not known
	ObjectiveUnit  string
	// Of all jobs of a GPU model, by its name; nil: each has its own.
	Clocks map[string]dvfsmodel.Point

	Modelled float64 // part of the run energy that is of jobs with a model; NaN where nothing runs
	Assumed  int     // planned jobs whose power nobody stated and no model has
	// part of the run energy of which nobody knows how far off it is: by models that
	// state no errors, or assumed.
	UnknownErrorShare float64

	// Of the saving, by the errors of models; nil: none is known, or nothing to compare
	// with.
	SavingInterval *Interval
	Prior          *PriorSaving // jobs without a model that run as others respond; nil: none

	// Of jobs on GPUs that are shared by profile; 0 where none are.
	Shared        int     // such jobs
	SharedGPUs    int     // such GPUs
	Slowed        int     // those of the jobs that take longer than they tolerate
	WorstSlowdown float64 // the longest of them, as a multiple of its time alone at the highest clock
}

// Saving returns the part of the baseline's energy that the plan doesn't take; NaN
// when the baseline isn't known.
func (s *Summary) Saving() float64 { return 1 - energyRatio(s.Energy, s.Baseline) }

// Gap returns how far the plan's energy is above its bound, as a fraction of the bound; NaN
// when that isn't known.
func (s *Summary) Gap() float64 { return energyRatio(s.Energy, s.Bound) - 1 }

// ObjectiveGap is [Summary.Gap] of the objective.
func (s *Summary) ObjectiveGap() float64 {
	if !(s.ObjectiveBound > 0) {
		return math.NaN()
	}
	return s.Objective/s.ObjectiveBound - 1
}

// forEnergy reports whether the plan is for the least energy.
func (s *Summary) forEnergy() bool { return s.ObjectiveUnit == "J" }

// objectiveText writes a value of the objective.
func (s *Summary) objectiveText(v float64, scale report.Scale) string {
	if s.forEnergy() {
		return scale.FormatWithUnit(v)
	}
	unit := s.ObjectiveUnit
	if strings.Contains(unit, " + ") && !strings.HasPrefix(unit, "(") {
		unit = "(" + unit + ")"
	}
	number := strconv.FormatFloat(v, 'g', 5, 64)
	if digits, power, large := strings.Cut(number, "e+"); large {
		number = digits + "·10" + superscript.Replace(strings.TrimLeft(power, "0"))
	}
	return number + " " + unit
}

// superscript raises digits.
var superscript = strings.NewReplacer("0", "⁰", "1", "¹", "2", "²", "3", "³", "4", "⁴", "5", "⁵", "6", "⁶",
	"7", "⁷", "8", "⁸", "9", "⁹")

// boundDistance returns how far the plan's objective is from its bound and on which side of it,
// such as "3.90 %" and "above": a plan that misses deadlines may take less than any that
// keeps them.
func (s *Summary) boundDistance() (part, side string) {
	gap := s.ObjectiveGap()
	if gap < -report.RelativeTolerance {
		return report.FormatPercent(-gap), "below"
	}
	return report.FormatPercent(max(0, gap)), "above"
}

// boundText says what the bound is to this plan.
func (s *Summary) boundText() string {
	if s.ObjectiveGap() < -report.RelativeTolerance {
		return "the least for keeping all deadlines"
	}
	return "which no schedule that is in time can beat"
}

// savingText says how the plan's energy compares with the baseline's, and with that at
// constant clocks.
func (s *Summary) savingText() string {
	text := lessOrMore(s.Saving()) + " than at default clocks"
	if s.SavingInterval.isWorthShowing() {
		text += " (" + s.SavingInterval.String() + " less in 9 of 10 cases)"
	}
	if s.isComparable(s.Constant) {
		saved := 1 - energyRatio(s.Energy, s.Constant.Energy)
		text += " and " + lessOrMore(saved) + " than at " + constantName(s.Mode)
	}
	return text
}

// constantName returns what constant clocks are called: nobody knows the best ones before all jobs are there.
func constantName(of planner.Mode) string {
	if of == planner.Online {
		return "constant clocks found in hindsight"
	}
	return "constant clocks"
}

func lessOrMore(saved float64) string {
	if saved < 0 {
		return report.FormatPercent(-saved) + " more"
	}
	return report.FormatPercent(saved) + " less"
}

// isComparable reports whether there is another plan to compare with, and each job has its own clocks here.
func (s *Summary) isComparable(other *Summary) bool { return other != nil && s.Clocks == nil }

// energyScale is in what energies of a plan are told that takes so much.
func energyScale(e dvfsmodel.Joule) report.Scale {
	return report.CommonScale(report.Joules, 5, float64(e))
}

// energyText returns an energy as in "12.076 MJ (3.355 kWh)".
func energyText(e dvfsmodel.Joule) string {
	return energyScale(e).FormatWithUnit(float64(e)) + " (" + report.FormatKWh(e) + ")"
}

func energyRatio(a, b dvfsmodel.Joule) float64 {
	if !(b > 0) {
		return math.NaN()
	}
	return float64(a / b)
}

// TimeSpread is how a time is spread over jobs, seconds.
type TimeSpread struct {
	Mean float64
	P95  float64 // 95 % of the jobs take no longer
}

// spreadOf returns the spread of some times, which it sorts. The percentile is the
// nearest rank's.
func spreadOf(times []float64) (s TimeSpread) {
	if len(times) == 0 {
		return s
	}
	slices.Sort(times)
	for _, t := range times {
		s.Mean += t / float64(len(times))
	}
	const percent = 95
	s.P95 = times[(len(times)*percent+99)/100-1]
	return s
}

// Summarise adds up a result, and what it is measured against: plans that leave out other jobs aren't compared.
func Summarise(r *Result) Summary {
	s := r.summary()
	if s.Unequal = r.Reference != nil && !leaveOutTheSame(r.Reference, r.Plan); s.Unequal {
		s.Baseline = 0
	}
	against := func(plan *planner.Plan) *Summary {
		if plan == nil || !leaveOutTheSame(plan, r.Plan) {
			return nil
		}
		other := (&Result{Problem: r.Problem, Plan: plan, Baseline: r.Baseline, Rates: r.Rates}).summary()
		return &other
	}
	s.addIntervals(r)
	s.Reference, s.Easy, s.Constant = against(r.Reference), against(r.Easy), against(r.Constant)
	s.Slower, s.Pace, s.Hindsight = against(r.Frontier.Slower), r.Frontier.Pace, against(r.Frontier.Hindsight)
	s.Least = against(r.Plan.Least)
	if r.Reference != nil && s.PastDue > 0 {
		before := r.Reference.PastDue(r.Problem)
		for _, task := range r.Plan.PastDue(r.Problem) {
			if _, late := slices.BinarySearch(before, task); !late &&
				r.Reference.Assignments[task].Node >= 0 {
				s.NewlyLate = append(s.NewlyLate, task)
			}
		}
	}
	return s
}

// leaveOutTheSame reports whether two plans place the same jobs.
func leaveOutTheSame(a, b *planner.Plan) bool {
	return slices.EqualFunc(a.Unplaced, b.Unplaced, func(x, y planner.Unplaced) bool { return x.Task == y.Task })
}

// runningCount returns how many tasks run at the present.
func (r *Result) runningCount() int {
	if r.Problem.Snapshot == nil {
		return 0
	}
	return len(r.Problem.Snapshot.Running)
}

// summary adds up the plan alone.
func (r *Result) summary() Summary {
	l := &r.Plan.Ledger
	s := Summary{
		Policy: r.Plan.Policy, From: r.Plan.From, Status: r.Plan.Status, Mode: r.Problem.Mode,
		Start: r.Problem.Start, Seed: r.Seed, Cut: r.Plan.Cut, AlwaysOn: r.AlwaysOn,
		JobsTotal: len(r.Problem.Tasks) - r.runningCount(), Misses: len(r.Plan.Misses),
		Infeasible: len(r.Plan.Unplaced),
		Energy:     l.Total(), Run: l.Run, Idle: l.Idle, TurnOn: l.TurnOn, Host: l.Host, Sleep: l.Sleep,
		Baseline: r.Baseline, Bound: r.Bound.Value, PastDue: len(r.Plan.PastDue(r.Problem)),
		Objective: r.Problem.Cost(r.Plan), ObjectiveBound: r.Bound.Cost, ObjectiveUnit: r.Problem.CostUnit(),
		Clocks: r.Plan.Clocks, MaxTurnaround: r.Problem.MaxTurnaround, Factors: r.Rates.Of(r.Problem, r.Plan),
	}
	first := math.Inf(1)
	waits, turnarounds := make([]float64, 0, s.JobsTotal), make([]float64, 0, s.JobsTotal)
	used := make([]planner.GPUSet, len(r.Plan.Nodes))
	runs := r.Problem.RunningTasks()
	for i := range r.Plan.Assignments {
		if runs != nil && runs[i] {
			continue
		}
		arrival := r.Problem.Tasks[i].Arrival
		first = min(first, arrival)
		if a := &r.Plan.Assignments[i]; a.Node >= 0 {
			for part := range a.Parts {
				used[part.Node] |= part.GPUs
			}
			s.End = max(s.End, a.End)
			waits, turnarounds = append(waits, a.Start-arrival), append(turnarounds, a.End-arrival)
		}
	}
	if len(waits) > 0 {
		s.Makespan = s.End - first
	}
	s.Wait, s.Turnaround = spreadOf(waits), spreadOf(turnarounds)
	s.Peak = newPowerTimeline(r.Problem, r.Plan).peak()
	s.Hours = r.Hours
	if len(r.Budget) > 0 {
		s.Budget, s.BudgetMost = float64(r.Budget.Least()), float64(r.Budget.Most())
		free := (&Result{Problem: r.Problem, Plan: r.Free}).summary()
		s.Free = &free
	}
	for _, gpus := range used {
		s.GPUsUsed += gpus.Len()
		s.NodesUsed += min(1, gpus.Len())
	}
	s.addModelled(r)
	s.addSharing(r)
	return s
}

// energyParts returns the parts of the total, in the order of every report.
func (s *Summary) energyParts() []energyPart {
	return []energyPart{
		{"run", s.Run}, {"idle", s.Idle}, {"turn-on", s.TurnOn}, {"host", s.Host}, {"sleep", s.Sleep},
	}
}

type energyPart struct {
	name   string
	energy dvfsmodel.Joule
}
