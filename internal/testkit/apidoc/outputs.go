package apidoc

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/epplan/epplan/internal/epdapi"
)

// Outputs returns the types of what commands print with --json, by the command's name.
func Outputs() map[string]reflect.Type {
	return map[string]reflect.Type{
		"plan": of[PlanOutput](), "compare": of[[]ComparedRun](), "savings": of[SavingsOutput](),
	}
}

// JSONSchema returns a file with the schema of a command's output. The source below root gives what types and
// fields mean.
func JSONSchema(root, command string, t reflect.Type) ([]byte, error) {
	s := &schemas{
		comments: newComments(root), types: make(map[string]reflect.Type), all: make(map[string]*schema),
		at: "#/$defs/", nulls: true,
	}
	is, err := s.of(t)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	to := json.NewEncoder(&out)
	to.SetEscapeHTML(false)
	to.SetIndent("", "  ")
	err = to.Encode(struct {
		Dialect string `json:"$schema"`
		Title   string `json:"title"`
		schema
		Defs map[string]*schema `json:"$defs"`
	}{"https://json-schema.org/draft/2020-12/schema", "epplan " + command + " --json", *is, s.all})
	return out.Bytes(), err
}

// PlanOutput is a plan: its totals, and its jobs.
type PlanOutput struct {
	Policy        string          `json:"policy"`
	Status        string          `json:"status"` // complete, infeasible or another
	Mode          string          `json:"mode"`   // offline or online
	Start         string          `json:"start"`
	ImprovedFrom  string          `json:"improved_from,omitempty"` // the policy whose plan was improved
	Search        string          `json:"search"`                  // done, or cut by the time for it
	Seed          *uint64         `json:"seed,omitempty"`
	QueueAt       string          `json:"queue_at,omitempty"` // when Slurm's queue was read
	SharedJobs    *int            `json:"shared_jobs,omitempty"`
	SharedGPUs    *int            `json:"shared_gpus,omitempty"`
	Slowed        *int            `json:"slowed,omitempty"` // jobs slowed down by more than they tolerate
	WorstSlowdown *float64        `json:"worst_slowdown,omitempty"`
	JobsTotal     int             `json:"jobs_total"`
	Misses        int             `json:"misses"`   // jobs that end after their deadline
	PastDue       int             `json:"past_due"` // jobs that end later than first come, first served would have them
	AlwaysOn      bool            `json:"always_on,omitempty"`
	ErrorUnknown  *float64        `json:"error_unknown"` // part of the jobs whose model's error isn't known
	Prior         *PriorOutput    `json:"prior"`         // jobs without a model that run as others respond
	PeakW         *float64        `json:"peak_w"`
	BudgetW       *float64        `json:"budget_w,omitempty"`
	WithoutBudget *AgainstOutput  `json:"without_budget,omitempty"`
	Power         []PowerStep     `json:"power,omitempty"`
	Hours         *HoursOutput    `json:"hours,omitempty"`
	Slower        *SlowerOutput   `json:"slower"`    // a plan with longer run times that takes less energy
	Hindsight     *AgainstOutput  `json:"hindsight"` // the plan had all jobs been known
	Least         *AgainstOutput  `json:"least"`     // the plan with the least energy
	NewlyLate     []string        `json:"newly_late"`
	Infeasible    []InfeasibleJob `json:"infeasible"`
	Warnings      []PlanWarning   `json:"warnings"`
	Jobs          []PlannedJob    `json:"jobs"`
	Shared        []SharedJob     `json:"shared,omitempty"`
	figuresOfAPlan
}

// figuresOfAPlan are what a plan comes to. Null: not known.
type figuresOfAPlan struct {
	Objective        *float64        `json:"objective"`
	ObjectiveUnit    *string         `json:"objective_unit"`
	ObjectiveBound   *float64        `json:"objective_bound"` // no schedule can be below it
	ObjectiveGap     *float64        `json:"objective_gap"`
	EnergyJ          *float64        `json:"energy_j"`
	RunJ             *float64        `json:"run_j"`
	IdleJ            *float64        `json:"idle_j"`
	TurnOnJ          *float64        `json:"turn_on_j"`
	HostJ            *float64        `json:"host_j"`
	SleepJ           *float64        `json:"sleep_j"`
	BaselineEnergyJ  *float64        `json:"baseline_energy_j"`
	Saving           *float64        `json:"saving"` // part of the baseline's energy
	MaxTurnaround    *float64        `json:"max_turnaround"`
	SavingInterval   *IntervalOutput `json:"saving_interval"`
	Modelled         *float64        `json:"modelled"` // part of the energy that models stand behind
	PowerAssumedJobs *int            `json:"power_assumed_jobs"`
	BoundJ           *float64        `json:"bound_j"`
	Gap              *float64        `json:"gap"`
	NodesUsed        *int            `json:"nodes_used"`
	GPUsUsed         *int            `json:"gpus_used"`
	EndS             *float64        `json:"end_s"`
	Cost             *float64        `json:"cost"`
	Currency         *string         `json:"currency"`
	CarbonG          *float64        `json:"carbon_g"`
	WaterL           *float64        `json:"water_l"`
	Baseline         *AgainstOutput  `json:"baseline"` // first come, first served at default clocks
	Easy             *AgainstOutput  `json:"easy"`     // EASY backfilling
	Constant         *ConstantOutput `json:"constant"` // the best constant clocks
	timesOfAPlan
}

// timesOfAPlan are how long a plan takes, and keeps jobs waiting.
type timesOfAPlan struct {
	MakespanS       *float64 `json:"makespan_s"`
	WaitMeanS       *float64 `json:"wait_mean_s"`
	WaitP95S        *float64 `json:"wait_p95_s"`
	TurnaroundMeanS *float64 `json:"turnaround_mean_s"`
	TurnaroundP95S  *float64 `json:"turnaround_p95_s"`
}

// AgainstOutput is a plan that others are measured against.
type AgainstOutput struct {
	EnergyJ         *float64 `json:"energy_j"`
	PastDue         *int     `json:"past_due,omitempty"`
	Misses          *int     `json:"misses,omitempty"`
	MakespanS       *float64 `json:"makespan_s,omitempty"`
	WaitMeanS       *float64 `json:"wait_mean_s,omitempty"`
	WaitP95S        *float64 `json:"wait_p95_s,omitempty"`
	TurnaroundMeanS *float64 `json:"turnaround_mean_s,omitempty"`
	TurnaroundP95S  *float64 `json:"turnaround_p95_s,omitempty"`
}

// SlowerOutput is a plan with longer run times.
type SlowerOutput struct {
	AgainstOutput
	Pace *float64 `json:"pace"`
}

// ConstantOutput is a plan at the same clocks for all jobs.
type ConstantOutput struct {
	AgainstOutput
	Saving    *float64                `json:"saving"`
	Hindsight bool                    `json:"hindsight"` // the clocks were chosen knowing all jobs
	Clocks    map[string]ClocksOutput `json:"clocks"`    // by GPU model
}

// ClocksOutput are the clocks of a GPU model: in MHz if it has a table of them, else as parts of its default
// ones.
type ClocksOutput struct {
	CoreMHz *float64 `json:"core_mhz,omitempty"`
	MemMHz  *float64 `json:"mem_mhz,omitempty"`
	CapW    *float64 `json:"cap_w,omitempty"`
	Fc      *float64 `json:"fc,omitempty"`
	Fm      *float64 `json:"fm,omitempty"`
}

// IntervalOutput is the interval that holds a value in 9 of 10 cases.
type IntervalOutput struct {
	Low  *float64 `json:"low"`
	High *float64 `json:"high"`
}

// PriorOutput is what jobs without a model save if they respond as others do.
type PriorOutput struct {
	Jobs           int             `json:"jobs"`
	Saving         *float64        `json:"saving"`
	SavingInterval *IntervalOutput `json:"saving_interval"`
}

// PowerStep is the power of the plan from a time on.
type PowerStep struct {
	TS float64 `json:"t_s"`
	W  float64 `json:"w"`
}

// HoursOutput is what beginning later saves.
type HoursOutput struct {
	SlackS     float64 `json:"slack_s"`
	Unit       string  `json:"unit"` // of both costs
	Cost       float64 `json:"cost"`
	CostAtOnce float64 `json:"cost_at_once"`
	// CostBound is what no plan costs less than that promises as much; null: not known.
	CostBound *float64 `json:"cost_bound"`
	JobsLater int      `json:"jobs_later"`
}

// InfeasibleJob is a job that can't be planned.
type InfeasibleJob struct {
	ID            string   `json:"id"`
	Why           string   `json:"why"`
	FinishIfFreeS *float64 `json:"finish_if_free_s"` // when it would end if its GPUs were free
}

// PlanWarning is a kind of warnings.
type PlanWarning struct {
	Kind    string   `json:"kind"`
	Count   int      `json:"count"`
	Text    string   `json:"text"`
	Example string   `json:"example"`
	All     []string `json:"all,omitempty"`
}

// PlannedJob is where and when a job runs, and at which clocks.
type PlannedJob struct {
	ID        string     `json:"id"`
	Node      int        `json:"node"` // unique only together with node_class
	NodeClass string     `json:"node_class"`
	GPUs      []int      `json:"gpus"`
	Nodes     []NodePart `json:"nodes,omitempty"` // of a job on several nodes
	StartS    *float64   `json:"start_s"`
	EndS      *float64   `json:"end_s"`
	DeadlineS *float64   `json:"deadline_s"` // null: none
	V         *float64   `json:"v"`          // voltage, part of the default one
	Fc        *float64   `json:"fc"`         // core clock, part of the default one
	Fm        *float64   `json:"fm"`         // memory clock, part of the default one
	CoreMHz   *float64   `json:"core_mhz,omitempty"`
	MemMHz    *float64   `json:"mem_mhz,omitempty"`
	CapW      *float64   `json:"cap_w,omitempty"`
	PowerW    *float64   `json:"power_w"`
	EnergyJ   *float64   `json:"energy_j"`
	Reason    string     `json:"reason"`
}

// NodePart is the GPUs of a job on one of its nodes.
type NodePart struct {
	Node int   `json:"node"`
	GPUs []int `json:"gpus"`
}

// SharedJob is a job that shares its GPU.
type SharedJob struct {
	ID       string   `json:"id"`
	Slowdown *float64 `json:"slowdown"` // times its run time alone
	Kappa    *float64 `json:"kappa"`    // the slowdown that it tolerates
	Slowed   bool     `json:"slowed"`
	Beside   []string `json:"beside"`
}

// ComparedRun is a row of a comparison. Each parameter that distinguishes runs is a further member. A run
// without a plan has nulls.
type ComparedRun struct {
	Policy        string   `json:"policy"`
	Status        string   `json:"status"`
	JobsTotal     *int     `json:"jobs_total"`
	Misses        *int     `json:"misses"`
	Infeasible    *int     `json:"infeasible"`
	PastDue       *int     `json:"past_due"`
	PlanningS     *float64 `json:"planning_s"`
	Slowed        *int     `json:"slowed,omitempty"`
	WorstSlowdown *float64 `json:"worst_slowdown,omitempty"`
	figuresOfAPlan
}

// SavingsOutput is what epd saved, with costs.
type SavingsOutput struct {
	epdapi.Savings
	GPUCost  FootprintOutput `json:"gpu_footprint"`
	NodeCost FootprintOutput `json:"node_footprint"`
}

// FootprintOutput is what a saving comes to; null where no factor is stated.
type FootprintOutput struct {
	KWh      float64  `json:"kwh"`      // of the computers
	SiteKWh  float64  `json:"site_kwh"` // with the PUE
	Cost     *float64 `json:"cost"`
	Currency string   `json:"currency"`
	Carbon   *float64 `json:"carbon_g"`
	Water    *float64 `json:"water_l"`
}
