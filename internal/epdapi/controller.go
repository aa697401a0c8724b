package epdapi

import (
	"fmt"
	"strings"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// How long a controller waits for Slurm: to tell of one job, as its Prolog waits
// meanwhile, and of all jobs.
const (
	JobWait   = 500 * time.Millisecond
	QueueWait = 30 * time.Second
	// ListWait is for the list of all jobs: from 23.02 on squeue takes half a minute to print 100,000.
	ListWait = 2 * time.Minute
)

// ControllerStatus is how a controller fares. Counts are since its start.
type ControllerStatus struct {
	Cluster       string               `json:"cluster"`
	Started       time.Time            `json:"started"`
	ConfigVersion string               `json:"config_version"`
	Mode          live.Mode            `json:"mode"`
	Modes         map[string]live.Mode `json:"modes,omitempty"` // by partition
	HoldOut       float64              `json:"hold_out"`
	ConstantArm   float64              `json:"constant_arm,omitempty"`
	Budgets       *BudgetList          `json:"budgets,omitempty"` // power budgets; absent: there are none
	Jobs          int                  `json:"jobs"`              // that are known
	Tokens        int                  `json:"tokens"`            // of submissions
	Decided       int                  `json:"decided"`           // of runs that didn't end yet
	Models        int                  `json:"models"`            // in use
	Submissions   int64                `json:"submissions"`
	Decisions     int64                `json:"decisions"`
	Applied       int64                `json:"applied"`
	HeldOut       int64                `json:"held_out"`
	Constant      int64                `json:"constant,omitempty"` // decisions of the constant arm
	BadRequests   int64                `json:"bad_requests"`
	Outcomes      int64                `json:"outcomes"`
	OutcomeErrors int64                `json:"outcome_errors"`
	Refits        int64                `json:"refits"`
	Retired       int64                `json:"models_retired"` // their predictions missed
	AdaptedRuns   int64                `json:"adapted_runs"`   // ended ones whose clocks were adapted
	// Ended ones that were placed beside others on a GPU.
	SharedRuns int64 `json:"shared_runs"`
	// Ended ones whose decided clocks weren't set, or not to their end, by what kept them from it.
	NotLocked map[live.NotLockedKind]int64 `json:"runs_not_locked,omitempty"`
	Asleep    int                          `json:"nodes_asleep"` // GPU nodes, whoever put them to sleep
	Waking    int                          `json:"nodes_waking"` // GPU nodes that wake
	Unwritten int64                        `json:"unwritten"`    // records that wait for the store
	// Records that the store refused or that had no room.
	Lost    int64  `json:"lost"`
	Trouble string `json:"trouble,omitempty"`
	// That is the trouble: the database isn't at its path.
	Moved          bool            `json:"records_moved,omitempty"`
	SlowestDecideS float64         `json:"slowest_decide_s"`
	Forecasts      *ForecastStatus `json:"forecasts,omitempty"`
	Queue          SyncStatus      `json:"queue"` // Slurm's jobs
	Nodes          SyncStatus      `json:"nodes"`

	// Implausible are outcomes of which something can't be, as an energy that no GPU
	// uses in that time: it is set aside, and counts nowhere. LastImplausible says what
	// it was the last time.
	Implausible     int64  `json:"outcomes_implausible"`
	LastImplausible string `json:"outcomes_implausible_last,omitempty"`
	// ForeignComments are jobs whose AdminComment belongs to another tool, so that no word of epd's is in it:
	// the token of a submission, or an energy.
	ForeignComments int64 `json:"foreign_comments,omitzero"`
	// ConfigWarnings say what in the configuration in force is hardly meant, or names what Slurm doesn't have.
	ConfigWarnings []string `json:"config_warnings,omitempty"`
	// Suspected are nodes whose GPUs seem to be held down by somebody else, and of which the configuration says
	// no site_clocks: jobs there are left alone.
	Suspected []SuspectedLimit `json:"suspected_limits,omitempty"`

	// Elsewhere are outcomes of jobs that Slurm doesn't have on the nodes that sent them: they count
	// nowhere.
	Elsewhere int64 `json:"outcomes_elsewhere,omitzero"`

	// MissedPrologs are the nodes where jobs with GPUs started without their Prolog having reached the agent.
	MissedPrologs []MissedProlog `json:"missed_prologs,omitempty"`
	// TokensSeen and TokensMissing count the jobs with GPUs that were submitted since the start: with a token of
	// job_submit.lua's, and without. A few may lack it as epd's answer came too late.
	TokensSeen    int64 `json:"submit_tokens_seen"`
	TokensMissing int64 `json:"submit_tokens_missing"`
}

// ForeignText returns a line about the comments that belong to other tools, or nothing.
func (s *ControllerStatus) ForeignText() string {
	if s.ForeignComments == 0 {
		return ""
	}
	return fmt.Sprintf("%d jobs have no word of epd's: their AdminComment belongs to another tool\n", s.ForeignComments)
}

// SuspectedLimit is a clock above which GPUs of a node never go, though they are busy and epd holds no lock.
type SuspectedLimit struct {
	Node     string        `json:"node"`
	GPUModel string        `json:"gpu_model"`
	Core     dvfsmodel.MHz `json:"core_mhz"`
}

// SyncStatus is how a controller keeps up with Slurm.
type SyncStatus struct {
	At       time.Time `json:"at,omitzero"` // of the last answer; absent: there was none
	Failures int       `json:"failures"`    // since then
	Trouble  string    `json:"trouble,omitempty"`
	// Unread are records of the last answer that could not be read and were passed over; UnreadReason says
	// why of the first one.
	Unread       int    `json:"unread,omitzero"`
	UnreadReason string `json:"unread_reason,omitempty"`
}

// UnreadText returns a line about the records that were passed over, or nothing.
func (s *SyncStatus) UnreadText(what string) string {
	if s.Unread == 0 {
		return ""
	}
	return fmt.Sprintf("%d records of Slurm's %s can't be read and are passed over: %s\n", s.Unread, what,
		slurm.Printable(s.UnreadReason, 400))
}

// Of so many jobs without a token the call in job_submit.lua is missing, if they are more than a part of all:
// some lack it as epd's answer came too late.
const (
	fewTokensMissing  = 3
	partTokensMissing = 0.2
)

// LacksSubmitCall reports whether jobs are submitted without a call of job_submit.lua.
func (s *ControllerStatus) LacksSubmitCall() bool {
	all := float64(s.TokensSeen + s.TokensMissing)
	return s.TokensMissing >= fewTokensMissing && float64(s.TokensMissing) > partTokensMissing*all
}

// JobsWithoutProlog counts the jobs whose Prologs reached no agent, of all nodes.
func (s *ControllerStatus) JobsWithoutProlog() (jobs int64) {
	for i := range s.MissedPrologs {
		jobs += s.MissedPrologs[i].Jobs
	}
	return jobs
}

// HookWords says which hooks never reach epd, a line each; none: all do.
func (s *ControllerStatus) HookWords() (lines []string) {
	const most = 10
	for i := range s.MissedPrologs[:min(most, len(s.MissedPrologs))] {
		m := &s.MissedPrologs[i]
		lines = append(lines, fmt.Sprintf("no Prolog came from %d jobs with GPUs on %s since %s, "+
			"the last of job %d",
			m.Jobs, slurm.Printable(m.Node, MaxModelName), m.Since.Format(time.RFC3339), m.Last))
	}
	if more := len(s.MissedPrologs) - most; more > 0 {
		lines = append(lines, fmt.Sprintf("and from jobs on %d further nodes", more))
	}
	if s.LacksSubmitCall() {
		lines = append(lines, fmt.Sprintf("%d of %d jobs with GPUs were submitted without a call of job_submit.lua",
			s.TokensMissing, s.TokensSeen+s.TokensMissing))
	}
	return lines
}

// NotLockedWords returns a line about the ended runs that didn't get their decided clocks, and why; "" if
// all did.
func (s *ControllerStatus) NotLockedWords() string {
	all, parts := int64(0), []string{}
	for _, kind := range live.NotLockedKinds {
		if n := s.NotLocked[kind]; n > 0 {
			all += n
			parts = append(parts, fmt.Sprintf("%d %s", n, kind.Words()))
		}
	}
	if all == 0 {
		return ""
	}
	return fmt.Sprintf("decided clocks weren't set, or not to the end, in %d ended runs: %s\n", all,
		strings.Join(parts, ", "))
}
