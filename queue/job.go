package queue

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
)

// Job is a request: what is known of it before it runs. Times are in seconds
// on the batch's own clock; +Inf stands for none. [NewJob] has the defaults.
type Job struct {
	ID         string // unique in its batch
	Name, User string
	Workload   string            // a name in a models file, or ""
	Model      *dvfsmodel.Params // the job's own model on one GPU, or nil; goes before Workload
	Arrival    float64           // s
	Deadline   float64           // s, on the same clock as Arrival
	Limit      float64           // s, the longest it may run
	// Runtime is the run time at default clocks in seconds, 0 when unknown. A
	// job with neither Model nor Workload must have it, or some in Measured; with a
	// Workload it scales the workload's times to this run time; with a Model it is
	// unused.
	Runtime float64
	// RuntimeModel is the GPU model that Runtime and Power are of; [AnyModel]: they
	// are the same on all; "": nobody said, which does where the job can only run on
	// one.
	RuntimeModel string
	Power        float64     // W, mean of one GPU at default clocks; 0 = unknown
	Measured     []Measured  // the same by GPU model, by name; goes before Runtime and Power
	GPUs         []GPUCount  // alternatives by GPU model, each of the whole job
	Nodes        int         // nodes that the job runs on, with equal parts of all; 0: as few as hold it
	Share        float64     // part of one GPU, 0 < Share ≤ 1
	CPUs         float64     // cores, of the whole job
	MemGiB       float64     // GiB of host memory, of the whole job
	Profile      *GPUProfile // what it uses of each GPU, or nil: unknown
	Extra        []Field     // x_ columns with a value, by name
	Pos          Position    // where it was read
}

// Measured is how a job runs on GPUs of one model at default clocks. At least one of
// both is known.
type Measured struct {
	Model   string  // GPU model
	Runtime float64 // s; 0 = unknown
	Power   float64 // W, mean of one GPU; 0 = unknown
}

// AnyModel as [Job.RuntimeModel] says that a job takes as long and as much power on
// every GPU model. Files write it so, too.
const AnyModel = "*"

// GPUCount is how many GPUs a job takes, on all its nodes, when they are of one model. The empty
// model stands for every model that the job doesn't list.
type GPUCount struct {
	Model string
	Count int
}

// Field is a column that is kept with a job and never interpreted. Its name
// begins with x_.
type Field struct {
	Name, Value string
}

// Batch is a set of jobs that are planned together.
type Batch struct {
	Name     string  // of the file
	Jobs     []Job   // in the file's order
	Warnings []error // about input that is valid but probably not meant
	// Speeds are how fast GPU models are beside each other: by them a run time of one is that of another,
	// where nobody measured it there.
	Speeds []Speed
	// SameElsewhere has a job whose run time is known on no GPU model that it may run on take as long on all.
	SameElsewhere bool
	// Start is second 0 of arrivals and deadlines, where these are dates with a zone; zero: it isn't known.
	Start time.Time
}

// Speed is how fast a GPU model is beside others: one of twice the factor takes half as long.
type Speed struct {
	Model  string
	Factor float64
}

// ParseSpeeds reads speeds as MODEL=FACTOR, separated by commas.
func ParseSpeeds(text string) ([]Speed, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var speeds []Speed
	for part := range strings.SplitSeq(text, ",") {
		at := strings.LastIndexByte(part, '=')
		if at < 0 {
			return nil, fmt.Errorf("%q, want MODEL=FACTOR, such as A100=1,H100=2.1", part)
		}
		model := strings.TrimSpace(part[:at])
		factor, err := strconv.ParseFloat(strings.TrimSpace(part[at+1:]), 64)
		if err != nil || !(factor >= minSpeed && factor <= maxSpeed) || model == "" {
			return nil, fmt.Errorf("%q, want a GPU model and a number from %v to %v, such as A100=1,H100=2.1",
				part, minSpeed, maxSpeed)
		}
		if slices.ContainsFunc(speeds, func(s Speed) bool { return s.Model == model }) {
			return nil, fmt.Errorf("%q is there twice, want each GPU model once", model)
		}
		speeds = append(speeds, Speed{Model: model, Factor: factor})
	}
	return speeds, nil
}

// Bounds of the speed of a GPU model beside others.
const (
	minSpeed = 1e-6
	maxSpeed = 1e6
)

// NewJob returns a job that arrives at 0, takes one whole GPU of any model, and has
// neither deadline nor limit. Its run time is still to be filled in.
func NewJob(id string) Job {
	job := defaultJob()
	job.ID = id
	job.GPUs = []GPUCount{{Count: 1}}
	return job
}

// defaultJob has the defaults of the plain fields.
func defaultJob() Job {
	return Job{Deadline: math.Inf(1), Limit: math.Inf(1), Share: 1}
}

// RunOn says on which GPU model run times and powers were measured, [AnyModel] for all
// alike, for the jobs that state some and don't say. [AnyModel] holds too for those that say it of GPU
// models on which they can't run.
func (b *Batch) RunOn(gpuModel string) {
	b.SameElsewhere = gpuModel == AnyModel
	for i := range b.Jobs {
		if j := &b.Jobs[i]; j.RuntimeModel == "" && (j.Runtime > 0 || j.Power > 0) {
			j.RuntimeModel = gpuModel
		}
	}
}

// GPUsOn returns the number of GPUs that the job takes on the given GPU model, and
// false when it can't run there.
func (j *Job) GPUsOn(model string) (int, bool) {
	count, ok := 0, false
	for _, g := range j.GPUs {
		if g.Model == model {
			return g.Count, true
		}
		if g.Model == "" {
			count, ok = g.Count, true
		}
	}
	return count, ok
}

// GPUProfile is what a job uses of each of its GPUs while it runs alone there.
type GPUProfile struct {
	UtilPct []float64 // utilisation by slot, percent; it repeats
	Slot    float64   // length of a slot, s
	MemGB   float64   // memory on each GPU, GB
	Kappa   float64   // how many times its run time alone it may take; 0 = not said
}
