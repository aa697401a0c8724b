package epdapi

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// Job is what is known of a job. Texts are its owner's, bytes that are no text
// escaped.
type Job struct {
	ID int64 `json:"job_id"`
	// ArrayID is the task of an array that the job is, such as 4_3, or tasks that wait together, 4_[3-7].
	ArrayID   string     `json:"array_id,omitempty"`
	Name      string     `json:"name"`
	User      string     `json:"user"`
	Account   string     `json:"account"`
	Partition string     `json:"partition"`
	State     string     `json:"state"` // as far as it is known; empty: it didn't start
	Submitted time.Time  `json:"submitted"`
	Nodes     int        `json:"nodes"`
	GPUs      int        `json:"gpus"`
	Limit     live.Limit `json:"limit_s"`  // wall time: seconds, "unlimited", or null where none is known
	Workload  string     `json:"workload"` // key of what repeats
	Scripted  bool       `json:"scripted"` // the workload is a script's, not a name's
}

// JobRow is a job in a list, with what its runs came to.
type JobRow struct {
	Job
	Mode    string            `json:"mode"`    // of its latest decision; empty: there is none
	Arm     live.Arm          `json:"arm"`     // as above
	Setting dvfsmodel.Setting `json:"setting"` // decided clocks and power limit; 0: the default
	// Locked are the clocks and power limits that its runs really had, each once: of those that
	// ended and of those that agents report. Absent: nobody told of any yet.
	Locked  []dvfsmodel.Setting `json:"locked,omitempty"`
	Runs    int                 `json:"runs"`   // ended ones; a run is one job on one node
	TimeS   live.Number         `json:"time_s"` // of the longest run
	EnergyJ live.Number         `json:"energy_j"`
	// Restarted is the same with runs that epd was restarted under, whose job was
	// suspended, or whose Epilog was late, which count in neither of the two; absent:
	// there are none.
	Restarted record.Restarted `json:"restarted,omitzero"`
}

// TimeAndEnergy returns the time of the longest run in seconds and the energy of all GPUs in joules,
// with runs that count in no model and no saving.
func (r *JobRow) TimeAndEnergy() (timeS, energyJ live.Number) {
	return r.Restarted.TimeS.Else(r.TimeS), r.Restarted.GPUEnergyJ.Else(r.EnergyJ)
}

// Settings returns the clocks and power limits that its runs had, or else are to have.
func (r *JobRow) Settings() []dvfsmodel.Setting {
	if len(r.Locked) > 0 {
		return r.Locked
	}
	return []dvfsmodel.Setting{r.Setting}
}

// IsCapped reports whether a power limit was set for one of its runs, or else is to be.
func (r *JobRow) IsCapped() bool {
	return slices.ContainsFunc(r.Settings(), func(s dvfsmodel.Setting) bool { return s.Cap > 0 })
}

// JobPage is a part of a list of jobs, those that were submitted last first. It
// may hold fewer than were asked for, or none, though there are more: then as many
// were looked at as may be at once.
type JobPage struct {
	Jobs []JobRow `json:"jobs"`
	Next int64    `json:"next"` // what to pass as before for the next page; 0: this is the last
}

// JobQuery says which jobs to list. Empty fields don't restrict.
type JobQuery struct {
	User      string
	Account   string
	Partition string
	Workload  string
	State     string    // as a [JobRow] has it
	Since     time.Time // submitted then or later
	Before    int64     // Next of the page before; 0: from the newest
	Limit     int       // jobs of a page; 0: 100
}

// Values returns the query of the path.
func (q *JobQuery) Values() url.Values {
	v := url.Values{}
	set := func(key, value string) {
		if value != "" {
			v.Set(key, value)
		}
	}
	set("user", q.User)
	set("account", q.Account)
	set("partition", q.Partition)
	set("workload", q.Workload)
	set("state", q.State)
	if !q.Since.IsZero() {
		v.Set("since", q.Since.UTC().Format(time.RFC3339))
	}
	if q.Before != 0 {
		v.Set("before", strconv.FormatInt(q.Before, 10))
	}
	if q.Limit != 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	return v
}

// JobView is everything that is known of a job.
type JobView struct {
	Job        *Job             `json:"job"`        // nil: Slurm said nothing of it
	Submission *record.Decision `json:"submission"` // what was noted then; nil: nothing
	Wishes     *Wishes          `json:"wishes"`     // nil: the job is over, or has none
	Decisions  []Decision       `json:"decisions"`
	Outcomes   []Outcome        `json:"outcomes"`
	// MissedProlog names the nodes whose agents had no Prolog of it; absent: there is none, or it has been over
	// for longer than Slurm lists it.
	MissedProlog []string `json:"missed_prolog,omitempty"`
	// LimitNow is its wall time as Slurm has it now, where that was changed since its clocks were decided,
	// by limit_s of the job; absent: it wasn't, or the job is over.
	LimitNow *live.Limit `json:"limit_now_s,omitempty"`
	// Estimate is what would be decided if the job started now; nil once it did.
	Estimate *Estimate `json:"estimate"`
	// Plan is what the plan in force has for it while it waits; absent: there is none.
	Plan *JobPlan `json:"plan,omitempty"`
	// ConfigVersion is the configuration in force now, Objective what it asks for.
	ConfigVersion string    `json:"config_version"`
	Objective     Objective `json:"objective"`
}

// LimitWords returns the job's time limit, as it is now and as its clocks were decided by. Durations are
// written by format.
func (v *JobView) LimitWords(format func(seconds float64) string) string {
	decided := v.Job.Limit.Words(format)
	if v.LimitNow == nil {
		return decided
	}
	return v.LimitNow.Words(format) + " now, " + decided + " when its clocks were decided"
}

// JobPlan is what the plan in force has for a job that waits.
type JobPlan struct {
	Policy  string           `json:"policy"`
	Mode    string           `json:"mode"`    // what the plan may do: off, observe, advise or enforce
	Planned *live.PlannedJob `json:"planned"` // null: nothing
	Why     string           `json:"why"`     // nothing is planned for it; empty: it is
}

// Words returns what is planned, in a sentence. Times are written by when.
func (p *JobPlan) Words(when func(time.Time) string) string {
	if p.Planned == nil {
		return "plan " + p.Policy + " has nothing for it: " + p.Why
	}
	j := p.Planned
	text := fmt.Sprintf("plan %s (%s) has it from %s to %s on %s, at %s: %s", p.Policy, p.Mode, when(j.Start),
		when(j.End), j.NodeClass, j.Words(), j.Reason)
	if j.HeldOut {
		text += "; held out at random, to run as without a plan"
	}
	return text
}

// DecisionOf returns the decision that a run was under; nil without one.
func (v *JobView) DecisionOf(o *Outcome) *Decision {
	for i := range v.Decisions {
		if o.DecisionID != 0 && v.Decisions[i].ID == o.DecisionID {
			return &v.Decisions[i]
		}
	}
	return nil
}

// Wishes are what a user asked for.
type Wishes struct {
	OptOut   bool      `json:"opt_out"`
	OwnFreq  bool      `json:"own_freq"` // --gpu-freq
	CoreMHz  int       `json:"core_mhz"` // fixed clocks; 0: not fixed
	MemMHz   int       `json:"mem_mhz"`
	CapW     int       `json:"cap_w,omitzero"` // fixed power limit of each GPU; 0: not fixed
	Deadline time.Time `json:"deadline,omitzero"`
	// Slowdown is how many times as long as at default clocks the job may run; 0: not stated.
	Slowdown float64  `json:"slowdown,omitzero"`
	Warnings []string `json:"warnings"`
}

// Words returns what a user asked for, each wish in words, but for the warnings.
// Times are written by when.
func (w *Wishes) Words(when func(time.Time) string) []string {
	var wishes []string
	if w.OptOut {
		wishes = append(wishes, "no other clocks (epplan:off)")
	}
	if w.OwnFreq {
		wishes = append(wishes, "clocks of its own (--gpu-freq)")
	}
	if w.CoreMHz > 0 || w.CapW > 0 {
		wishes = append(wishes, "fixed at "+dvfsmodel.Setting{
			Core: dvfsmodel.MHz(w.CoreMHz), Mem: dvfsmodel.MHz(w.MemMHz), Cap: dvfsmodel.Watt(w.CapW),
		}.Words()+", kept even where its time limit comes near")
	}
	if !w.Deadline.IsZero() {
		wishes = append(wishes, "to end by "+when(w.Deadline))
	}
	if w.Slowdown > 0 {
		wishes = append(wishes, fmt.Sprintf("to take at most %v times as long as at default clocks", w.Slowdown))
	}
	return wishes
}

// Objective is what clocks are chosen for: the least weighted sum, times the
// run time to a power.
type Objective struct {
	EnergyWeight float64 `json:"energy_weight"`
	TimeWeight   float64 `json:"time_weight"`
	DelayPower   float64 `json:"delay_power"`
	// Currency is what the weights are in, for a joule and for a second; empty: only
	// their ratio counts.
	Currency string `json:"currency,omitempty"`
}

// Decision is a decision with what the choice was between.
type Decision struct {
	record.Decision
	Model   *Model `json:"model"`          // nil: none, or one that is gone
	Default *Point `json:"default_clocks"` // predicted; nil without a model
	Chosen  *Point `json:"chosen_clocks"`  // of the clocks named by the decision or its reason
}

// Model is what a prediction goes by.
type Model struct {
	Version int64         `json:"version"`
	Prior   bool          `json:"prior"` // what workloads have in common, after the runs seen
	Samples int           `json:"samples"`
	Margin  float64       `json:"margin"` // ratio of time to prediction, less 1, that is seldom exceeded
	MinCore dvfsmodel.MHz `json:"min_core_mhz"`
	MaxCore dvfsmodel.MHz `json:"max_core_mhz"` // of the runs seen
}

// Point is a prediction for a job's GPUs at a pair of clocks.
type Point struct {
	dvfsmodel.Setting
	TimeS   float64 `json:"time_s"`
	LowerS  float64 `json:"lower_s"`
	UpperS  float64 `json:"upper_s"`
	PowerW  float64 `json:"power_w"`  // of the GPUs
	EnergyJ float64 `json:"energy_j"` // of the GPUs
	HostJ   float64 `json:"host_j"`   // of their share of the node's other parts
}

// Outcome is what a run came to, with its series as numbers.
type Outcome struct {
	record.Outcome
	Series Series `json:"series"`
}

// Series is utilisation over a run, from 0 to 1.
type Series struct {
	IntervalS float64       `json:"interval_s"`
	Values    []live.Number `json:"values"`
}

// UndecidedWords says why nothing is decided about a job without decisions.
func (v *JobView) UndecidedWords() string {
	switch {
	case len(v.MissedProlog) > 0:
		return "Nothing was decided: its Prolog never reached epd on " + strings.Join(v.MissedProlog, ", ") +
			", so that it ran at default clocks and isn't recorded; epplan doctor says more there."
	case v.Job == nil || v.Job.State == string(slurm.Pending) || v.Job.State == "":
		return "Nothing is decided before it starts; epplan explain says what would be."
	}
	return "Nothing was decided: no Prolog of it reached the controller."
}
