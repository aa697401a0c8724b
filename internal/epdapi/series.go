package epdapi

import (
	"context"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// SuffixSeries after the path of a job is where its time series are read.
const SuffixSeries = "/series"

// JobSeries are the time series of a job's runs, as far as the caller may see
// the job.
type JobSeries struct {
	Runs []RunSeries `json:"runs"` // those that ended first, each kind in the order of their beginning
}

// RunSeries is what a run did to its GPUs over time.
type RunSeries struct {
	RunID    string    `json:"run_id"` // of its decision, too
	Node     string    `json:"node"`
	GPUModel string    `json:"gpu_model"`
	GPUs     int       `json:"gpus"` // that the readings are of
	Started  time.Time `json:"started,omitzero"`
	Ended    time.Time `json:"ended,omitzero"` // absent: it lasts, or nobody told of its end yet
	// Live tells that the run lasts: the readings are those that the node's agent
	// reported last, and go as far as that report, At.
	Live bool      `json:"live"`
	At   time.Time `json:"at,omitzero"` // until when the readings go
	// Setting is the clocks that were locked; of a run that lasts those that the
	// agent wants now. 0: the default.
	Setting     dvfsmodel.Setting `json:"setting"`
	Power       Band              `json:"power_w"`     // of one GPU
	Core        Band              `json:"core_mhz"`    // likewise
	Utilisation Series            `json:"utilisation"` // of an ended run: up to 256 points
	// Missing says why there is no power and no clock over time; empty: there is.
	Missing string `json:"missing,omitempty"`
}

// Band is a quantity over a run's time, in at most 64 points. Its lists are of
// one length; unknown points are null.
type Band struct {
	IntervalS float64       `json:"interval_s"` // of a point; 0: there are none
	Mean      []live.Number `json:"mean"`       // over the run's GPUs and the interval
	Low       []live.Number `json:"low"`        // the least that was read of any of the GPUs
	High      []live.Number `json:"high"`       // and the most
}

// Series asks for the time series of a job's runs.
func (c *Client) Series(ctx context.Context, id slurm.JobID) (*JobSeries, error) {
	return get[JobSeries](ctx, c, PathJobs+"/"+id.String()+SuffixSeries, nil)
}
