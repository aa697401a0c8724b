package slurm

import (
	"fmt"
	"time"

	"github.com/epplan/epplan/live"
)

// AccountingRecord holds a job or one of its steps as accounting knows it, settled where columns disagree:
// see [AccountingRow.Record].
type AccountingRecord struct {
	Ref          JobRef // as printed: 12_4, 13+1, 12.batch
	ID           JobID  // the plain job number, also of a task
	Step         string // "" for the job itself
	Cluster      string // "" if it isn't stated
	Name         string // hostile text
	User         string
	Account      string
	Partition    string
	QOS          string
	State        JobState
	Exit         ExitStatus
	ExitKnown    bool
	Submit       time.Time
	Eligible     time.Time
	Start        time.Time     // zero when it never ran
	End          time.Time     // zero while it runs
	Elapsed      time.Duration // for how long it ran, without the time for which it was suspended
	Suspended    time.Duration
	TimeLimit    live.Limit
	NodeList     string
	Nodes        []string
	NodeCount    live.Number
	CPUs         live.Number
	Allocated    TRES
	Requested    TRES
	GPUs         live.Number // whole ones, given or else asked for
	GPUModel     string      // Slurm's type; "" if it isn't stated, or if there are several
	PartOfGPU    bool        // it had a MIG slice, shards or MPS
	Energy       float64     // joules; 0 when Slurm does not measure
	Utilisation  float64     // of the GPUs, mean, 0..1; 0 when Slurm does not measure
	Restarts     int
	Comment      string // hostile text
	AdminComment string
	Doubts       []Doubt // columns that disagree
}

// Doubt tells that columns of one record don't agree, or don't tell all, and what was taken.
type Doubt struct {
	Kind DoubtKind
	Text string // what the columns say, and what was taken
}

// DoubtKind names a way in which columns disagree.
type DoubtKind string

// The ways in which columns of a record disagree, or leave something open.
const (
	DoubtRunTime    DoubtKind = "run time isn't End - Start"
	DoubtClockHour  DoubtKind = "local time that comes twice when the clocks go back"
	DoubtNoEnd      DoubtKind = "start or end not stated"
	DoubtGPUs       DoubtKind = "columns of GPUs disagree"
	DoubtRequested  DoubtKind = "GPUs as asked for, as nothing says what was given"
	DoubtGPUModels  DoubtKind = "GPUs of several models, or of one that isn't stated"
	DoubtPartOfGPU  DoubtKind = "part of a GPU (MIG, shard, MPS)"
	DoubtEnergySum  DoubtKind = "energy of the job is that of its steps added up"
	DoubtEnergy     DoubtKind = "columns of energy disagree"
	DoubtEnergyText DoubtKind = "energy that is no number"
)

// CellKind tells what of a record can't be read.
type CellKind string

// The kinds of cells that can't be read.
const (
	CellID       CellKind = "job id"
	CellTime     CellKind = "time"
	CellNegative CellKind = "negative time"
	CellNumber   CellKind = "number"
	CellTwice    CellKind = "column given twice, with different values"
)

// CellError tells which column of a record can't be read, and why.
type CellError struct {
	Kind   CellKind
	Column string
	Err    error
}

// Error returns the reason with its column.
func (e *CellError) Error() string {
	if e.Column == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("column %s: %v", e.Column, e.Err)
}

// Unwrap returns the reason.
func (e *CellError) Unwrap() error { return e.Err }

// stepUsage adds up what accounting says of a job's steps. The step extern spans the whole job on all its
// nodes, batch the whole job on the first one, and the others run inside of it, so that their energies can't
// just be added.
type stepUsage struct {
	extern, batch, others float64 // joules
	percent, seconds      float64 // of utilisation: the mean, times the seconds; and the seconds
	longest               time.Duration
}

// add takes one step's energy in joules, how long it took, and TRESUsageInAve. Unknown values are 0 or nil.
func (u *stepUsage) add(step string, joules float64, elapsed time.Duration, usage TRES) {
	switch step {
	case "extern":
		u.extern += joules
	case "batch":
		u.batch += joules
	default:
		u.others += joules
	}
	u.longest = max(u.longest, elapsed)
	if percent, ok := usage["gres/gpuutil"]; ok && percent <= 100 {
		u.percent += percent * elapsed.Seconds()
		u.seconds += elapsed.Seconds()
	}
}

// energy returns the job's, in joules; 0 when no step has one. An extern step with less than half of what the
// others have wasn't measured throughout.
func (u *stepUsage) energy() float64 {
	inside := max(u.batch, u.others)
	if u.extern >= inside/2 {
		return u.extern
	}
	return inside
}

// utilisation returns the mean over the job's steps of how busy their GPUs were, 0 to 1; 0 when nothing was
// measured.
func (u *stepUsage) utilisation() float64 {
	if u.seconds == 0 {
		return 0
	}
	return u.percent / 100 / u.seconds
}
