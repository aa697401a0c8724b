package epdapi

import (
	"time"

	"github.com/epplan/epplan/live"
)

// Queue is Slurm's queue of GPU jobs with what is known of their workloads.
type Queue struct {
	At    time.Time   `json:"at"`
	Jobs  []QueuedJob `json:"jobs"`  // pending and running ones, as Slurm lists them
	Nodes []QueueNode `json:"nodes"` // kinds of nodes that jobs can be started on
	// LeftOut counts jobs that are too many to list.
	LeftOut int `json:"left_out"`
	// Models are the models in use of the jobs' workloads, as a models file.
	Models string `json:"models_toml"`
	// Profiles are GPU models whose clocks epd knows and no profile of epplan's
	// does, as a profiles file.
	Profiles string `json:"profiles_toml"`
}

// QueuedJob is a job that waits or runs.
type QueuedJob struct {
	ID        int64  `json:"job_id"`
	Name      string `json:"name"`
	User      string `json:"user"`
	Partition string `json:"partition"`
	State     string `json:"state"`
	Held      bool   `json:"held"`   // or not due yet, or it asks for what it can't have
	Reason    string `json:"reason"` // why it waits, in Slurm's word; empty: it runs
	// Of an array, that are this record; else 1. At least, where Slurm cut its list.
	Tasks      int         `json:"tasks"`
	ArrayJob   int64       `json:"array_job,omitzero"`   // number of the array that the record is of
	ArrayTasks string      `json:"array_tasks,omitzero"` // Slurm's list of those tasks, such as 0-3,7%2
	Nodes      int         `json:"nodes"`
	NodesAway  int         `json:"nodes_away,omitzero"` // of a running job's nodes, those that take no further jobs
	GPUs       int         `json:"gpus"`
	Shared     bool        `json:"shared"`            // it asks for parts of GPUs
	GPUModel   string      `json:"gpu_model"`         // that the job wants, or runs on; empty: any, or not known
	AgeS       live.Number `json:"age_s"`             // since its submission; of one that runs since its start
	Limit      live.Limit  `json:"limit_s"`           // wall time: seconds, "unlimited", or null where none is known
	DeadlineS  live.Number `json:"deadline_s"`        // from now on
	EndsS      live.Number `json:"ends_s"`            // a running job's limit, from now on
	Workload   string      `json:"workload"`          // key of a model; empty: there is none
	HandsOff   bool        `json:"hands_off"`         // the user wants default clocks, or chose others
	Slowdown   float64     `json:"slowdown,omitzero"` // how much longer it may run, by its user's wish
	RuntimeS   live.Number `json:"runtime_s"`         // predicted where there is no model, for so many jobs
	PowerW     live.Number `json:"power_w"`           // of each GPU, likewise
}

// QueueNode is a kind of node.
type QueueNode struct {
	GPUModel   string   `json:"gpu_model"` // as in its profile; empty: not known
	GPUs       int      `json:"gpus"`      // of each node
	Count      int      `json:"count"`
	Partitions []string `json:"partitions"` // that all of them are in
}
