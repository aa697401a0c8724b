package epdapi

import (
	"context"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// Paths of nodes. Agents report to the second one; that is for root and Slurm's
// user.
const (
	PathNodes  = "/v1/nodes"
	PathReport = "/v1/report"
)

// Bounds of a [NodeReport]; what is more is left out by the agent, and refused by
// the controller.
const (
	MaxReportGPUs     = 64
	MaxReportRuns     = 128
	MaxReportTroubles = 8
	MaxReportPrologs  = 512
	MaxReport         = 256 << 10 // bytes
)

// NodeReport is what a node's agent tells its controller every so often.
type NodeReport struct {
	Node       string    `json:"node"`
	Version    string    `json:"version"`
	Started    time.Time `json:"started"`
	At         time.Time `json:"at"` // by the node's clock
	GPUs       []NodeGPU `json:"gpus"`
	Runs       []NodeRun `json:"runs"`
	Unrecorded int       `json:"unrecorded"` // ended runs whose outcomes the controller hasn't acknowledged
	Aside      int       `json:"aside"`      // and those that it refused for good
	Troubles   []Problem `json:"troubles"`   // the latest ones, oldest first
	Troubled   int       `json:"troubled"`   // things that went wrong since its start
	Steps      int       `json:"steps"`      // clock changes of runs whose clocks are adapted
	LeftOut    int       `json:"left_out"`   // GPUs and runs that are too many to tell of
	// Prologs are the jobs whose Prologs came lately; absent: the agent's version doesn't say.
	Prologs []slurm.JobID `json:"prologs,omitzero"`
}

// MissedProlog is a node whose agent had no Prolog of jobs with GPUs that started there while it ran.
type MissedProlog struct {
	Node  string      `json:"node"`
	Jobs  int64       `json:"jobs"`
	Since time.Time   `json:"since"` // when the first one was found
	Last  slurm.JobID `json:"last_job"`
	At    time.Time   `json:"at"` // when that was found
}

// NodeGPU is a GPU as its agent sees it.
type NodeGPU struct {
	GPU
	Read        bool          `json:"read"`         // it answered: clocks, power and utilisation are known
	Utilisation live.Number   `json:"utilisation"`  // 0..1
	Writes      int           `json:"writes"`       // of its clocks since the agent's start
	MinCore     dvfsmodel.MHz `json:"min_core_mhz"` // of its table of clocks; 0: not known
	MaxCore     dvfsmodel.MHz `json:"max_core_mhz"`
	// SuspectedLimit is the highest core clock at which the GPU ran, flat and busy, below its table's top without
	// a lock of epd's: somebody else may hold it there. 0: nothing of that kind was seen.
	SuspectedLimit dvfsmodel.MHz `json:"suspected_limit_mhz,omitzero"`
	// Journal is what the agent's journal holds of it: its clocks are, or may be,
	// locked; nil: they aren't.
	Journal *JournalEntry `json:"journal"`
}

// JournalEntry says since when and for whom a GPU's clocks are locked.
type JournalEntry struct {
	Since time.Time `json:"since"`
	RunID string    `json:"run"`
	Job   uint32    `json:"job"`
}

// NodeRun is a run on the node, with what it did to its GPUs so far.
type NodeRun struct {
	Run
	Partition string `json:"partition"`
	// Readings are its GPUs' power and core clock over time until now; a list of
	// nodes leaves them out, see [JobSeries].
	Readings record.Readings `json:"readings,omitzero"`
}

// ReportAnswer tells an agent when it is wanted to report again.
type ReportAnswer struct {
	EveryS float64 `json:"every_s"`
	// SiteClocks are the highest clocks of the node's GPUs by the configuration, of those whose model it names
	// there. nil: the controller doesn't know yet; empty: the site limits none of them.
	SiteClocks []SiteClocks `json:"site_clocks,omitzero"`
	// Budget tells that the agent is to ask for leases of watts.
	Budget bool `json:"budget,omitempty"`
}

// SiteClocks are the highest clocks at which the site lets a GPU run: what stands on it while no run has it.
type SiteClocks struct {
	UUID string `json:"uuid"`
	// Core and Mem bound nothing where they are 0. At the top of the GPU's table, or above, they say that the
	// site has no limit.
	Core dvfsmodel.MHz `json:"core_max_mhz"`
	Mem  dvfsmodel.MHz `json:"mem_max_mhz"`
}

// NodeList is what is known of the nodes with GPUs, in the order of their names.
type NodeList struct {
	At      time.Time    `json:"at"`
	Power   ClusterPower `json:"power"`
	Budgets *BudgetList  `json:"budgets,omitempty"` // power budgets; absent: there are none
	Nodes   []NodeView   `json:"nodes"`
	LeftOut int          `json:"left_out"` // nodes that are too many to list
}

// NodeView is what is known of a node.
type NodeView struct {
	Name       string   `json:"node"`
	State      string   `json:"state"` // in Slurm, as IDLE or MIXED+DRAIN; empty: Slurm didn't say
	Reason     string   `json:"reason,omitempty"`
	Partitions []string `json:"partitions"`
	GPUs       int      `json:"gpus"` // that Slurm knows of, or its agent
	// Heard is when its agent reported last, by the controller's clock; absent: not
	// since epd's start, or not for a day.
	Heard time.Time `json:"heard,omitzero"`
	Fresh bool      `json:"fresh"` // the report isn't older than three of them are apart
	// SkewS is how far the node's clock is ahead of the controller's, less what the
	// report took on its way.
	SkewS float64 `json:"skew_s"`
	// Report is what it said; nil: nothing. Users see the runs of their own jobs in
	// it, and neither troubles nor the journal.
	Report *NodeReport `json:"report"`
}

// ClusterPower is the power of the GPUs of all nodes with a fresh report.
type ClusterPower struct {
	GPUW   float64 `json:"gpu_power_w"`
	GPUs   int     `json:"gpus"`      // that it is of
	Nodes  int     `json:"nodes"`     // that it is of
	Silent int     `json:"silent"`    // nodes with GPUs that it isn't of: no fresh report
	Unread int     `json:"unread"`    // GPUs of fresh reports that didn't answer
	Oldest float64 `json:"oldest_s"`  // age of the oldest report in it
	Busy   int     `json:"busy_gpus"` // GPUs of it with a run
	Held   int     `json:"held_gpus"` // GPUs of it whose clocks are, or may be, locked
}

// Nodes asks what is known of the nodes.
func (c *Client) Nodes(ctx context.Context) (*NodeList, error) {
	return get[NodeList](ctx, c, PathNodes, nil)
}
