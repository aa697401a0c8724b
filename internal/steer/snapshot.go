package steer

import (
	"slices"
	"strings"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/begins"
	"github.com/epplan/epplan/internal/colocate"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/lever"
)

// Snapshot is what Slurm shows.
type Snapshot struct {
	// At is a time before Slurm was asked, so that changes since can be told: of
	// an answer that several callers share, when the first of them asked.
	At time.Time
	// Jobs are all that Slurm knows and that haven't ended; ended ones may be there.
	Jobs []slurm.Job
	// Nodes may be missing as a whole: then no node is steered.
	Nodes []slurm.Node
	// Jobs and nodes that Slurm lists and that could not be read.
	UnreadJobs, UnreadNodes slurm.Unread
}

// Settings say what is to be steered.
type Settings struct {
	Version  string // of the configuration
	Live     config.Live
	Profiles *config.Profiles // nil: no weights
	// Margin is what a time limit is advised to have beyond the longest
	// run, as a fraction.
	Margin float64
	// Upper is how long a job runs at most, where that is known; nil: nowhere.
	Upper func(*slurm.Job) (time.Duration, bool)
	// Energy is how many joules a job is expected to need on a GPU model, by its
	// profile's name, where that is known; nil: nowhere.
	Energy func(j *slurm.Job, gpuModel string) (float64, bool)
	// Shared is in which order nodes with shared GPUs suit a pending job; nil: that
	// isn't known.
	Shared func(*colocate.ClusterState, *slurm.Job) colocate.Order
	// Ranking is the order that a policy wants; nil: deadlines alone count.
	Ranking *Ranking
	// Prices are what energy costs over time; nil: that isn't known.
	Prices begins.Prices
	// Short is how many watts the power budgets of a node lack, with all GPUs at their least limits; nil: none.
	Short func(node string) dvfsmodel.Watt
}

// Ranking is the order in which a policy would start what waits.
type Ranking struct {
	Policy  string
	At      time.Time           // of the queue that it was made of
	Until   time.Time           // it says nothing any more then
	Place   map[slurm.JobID]int // by job, the first 0
	Without int                 // jobs of the queue that have no place
	Trouble string              // why there is no newer one
	// Of a plan that is meant with all it has, which an order alone isn't: the GPU models on which it has
	// jobs, by their profiles' names; those that are to be as without it; and when it needs nodes that run
	// nothing. Nil: of an order alone.
	GPUModel map[slurm.JobID]string
	HeldOut  map[slurm.JobID]bool
	Needs    []live.NodeNeed
	// CountsDeadlines tells that the plan has jobs with a deadline where they meet it if they can: else they go
	// before all others.
	CountsDeadlines bool
}

// planOf returns the plan that is meant with all it has, where it says something yet; nil: there is none.
func (set *Settings) planOf(s *Snapshot) *Ranking {
	if r := set.Ranking; r != nil && r.GPUModel != nil && !s.At.After(r.Until) {
		return r
	}
	return nil
}

// countsDeadlines reports whether a plan that says something yet has counted deadlines.
func (set *Settings) countsDeadlines(s *Snapshot) bool {
	r := set.planOf(s)
	return r != nil && r.CountsDeadlines
}

// OwnChanges is what was changed before a snapshot, as [NewPlan] needs it: it must not
// take our part for somebody else's.
type OwnChanges struct {
	UserNice    map[slurm.JobID]int64  // the nice that is the user's own, of jobs whose nice was changed
	Untouchable map[slurm.JobID]bool   // jobs whose nice isn't to be touched any more
	Prefer      map[slurm.JobID]bool   // jobs whose preference is our doing
	Begin       map[slurm.JobID]string // the begin times of jobs that begin later by our doing
	Weights     map[string]uint32      // by node, before the change
	Asleep      map[string]bool        // nodes that were powered down and haven't come back
	Idle        map[string]time.Time   // since when nodes have been idle
	Sleeps      map[string]NodeSleep   // what is known of nodes' sleep
}

// WantedChange is a value that ought to be in force. Undoing it gives what was before.
type WantedChange struct {
	lever.Undo
	Why string
}

// AdviceKind is what an advice is about.
type AdviceKind string

// The kinds of advice.
const (
	KindOrder  AdviceKind = "order"  // a job would be put behind another
	KindPrefer AdviceKind = "prefer" // a job would prefer nodes with a feature
	KindLimit  AdviceKind = "limit"  // a shorter time limit would do
	KindWeight AdviceKind = "weight" // a node would get another weight
	KindSleep  AdviceKind = "sleep"  // a node would be powered down
)

// Advice is what would be done, or what a user might do.
type Advice struct {
	Kind      AdviceKind  `json:"kind"`
	Job       slurm.JobID `json:"job_id,omitempty"`
	UID       uint32      `json:"uid"` // of the job; 0 with a node
	User      string      `json:"user,omitempty"`
	Partition string      `json:"partition,omitempty"`
	Node      string      `json:"node,omitempty"`
	Text      string      `json:"text"`
}

// Plan is what [NewPlan] found.
type Plan struct {
	Wants  []WantedChange // those that matter most first
	Advice []Advice       // at most [MaxAdvice]
	More   int            // advice beyond that
	Notes  []string       // what can't be done, and why
	Policy string         // whose order it is; empty: deadlines alone count
	Order  []slurm.JobID
	Shared *colocate.Order // of nodes, for the next job that asks for a part of a GPU; nil: there is none

	lines map[jobGroup]line // of groups that are put in order
	rooms *begins.Rooms     // for jobs that can wait; nil: none does
}

// line is the end of a group that is in order, where newcomers come.
type line struct {
	most    int64 // by which a job of it is lowered
	planned bool  // a plan has counted deadlines: they come there, too
}

// MaxAdvice is how much advice a plan has at most.
const MaxAdvice = 1000

// advise adds advice, or counts it once there is too much.
func (p *Plan) advise(a Advice) {
	if len(p.Advice) >= MaxAdvice {
		p.More++
		return
	}
	p.Advice = append(p.Advice, a)
}

// NewPlan returns what ought to be in force. It depends on its arguments alone. Asked
// again after the wanted values are in force, it wants the same ones.
func NewPlan(s *Snapshot, set *Settings, ours *OwnChanges) Plan {
	p := Plan{lines: make(map[jobGroup]line)}
	p.planOrder(s, set, ours)
	if !slices.ContainsFunc(s.Jobs, hasToken) {
		p.lines = nil // a nice that a job was submitted with wouldn't be known as ours
	}
	if len(s.Nodes) > 0 {
		p.preferFeatures(s, set, ours)
		p.planWeights(s, set, ours)
		p.powerDownIdle(s, set, ours)
		p.planHours(s, set, ours)
	}
	p.adviseLimits(s, set)
	return p
}

func hasToken(j slurm.Job) bool {
	_, _, found := slurm.ParseToken(j.AdminComment)
	return found
}

// adviseLimits advises shorter time limits.
func (p *Plan) adviseLimits(s *Snapshot, set *Settings) {
	if set.Upper == nil {
		return
	}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		if j.State.Base != slurm.Pending ||
			modeOf(strings.Split(j.Partition, ","), &set.Live) == live.Observe || requestsOf(j).Off {
			continue
		}
		upper, known := set.Upper(j)
		if !known {
			continue
		}
		if a, ok := slurm.AdviseLimit(j.TimeLimit, upper, set.Margin); ok {
			p.advise(Advice{
				Kind: KindLimit, Job: j.ID, UID: j.UID, User: j.User, Partition: j.Partition, Text: a.Text,
			})
		}
	}
}

// requestsOf reads a job's comment. Times count from its submission.
func requestsOf(j *slurm.Job) slurm.Wishes { return slurm.ParseWishes(j.Comment, j.Submit.Local()) }
