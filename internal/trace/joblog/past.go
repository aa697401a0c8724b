package joblog

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// maxName is how long a job's name may be (Slurm's bound), bytes.
const maxName = 1024

// pastOf returns a job as history keeps it, and notes what its record leaves in doubt. Its end is without the
// time for which it was suspended. hasLimits tells that the log states time limits.
func (t *Tally) pastOf(line int, o *slurm.AccountingRecord, hasLimits bool) *record.HistoryJob {
	p := &record.HistoryJob{
		Cluster: o.Cluster, JobID: refText(&o.Ref), Submitted: o.Submit.UTC(), Started: o.Start.UTC(),
		User: o.User, Account: o.Account, Partition: o.Partition, QOS: o.QOS,
		Name:  []byte(o.Name[:min(len(o.Name), maxName)]),
		State: string(o.State.Base),
		GPUs:  o.GPUs, GPUModel: o.GPUModel, CPUs: o.CPUs, Nodes: o.NodeCount, Limit: o.TimeLimit,
		EnergyJ: measuredOrUnknown(o.Energy), Utilisation: roundedShare(o.Utilisation),
	}
	if !o.End.IsZero() && !o.Start.IsZero() {
		if p.Ended = o.End.UTC(); !p.Ended.Before(p.Started) {
			p.Ended = p.Started.Add(o.Elapsed)
		}
	}
	if o.ExitKnown {
		p.ExitCode = live.Known(float64(o.Exit.Code))
	}
	if p.Started.IsZero() {
		return p // it never ran: nothing is in doubt
	}
	if hasLimits {
		p.Limit = t.limitOrNote(line, p.JobID, o.TimeLimit)
	}
	if p.Submitted.IsZero() {
		t.fillSubmit(line, p, o.Eligible)
	}
	for _, d := range o.Doubts {
		t.noteLine(line, string(d.Kind), fmt.Errorf("job %s: %s", p.JobID, d.Text))
	}
	return p
}

// fillSubmit takes another time for a submit time that isn't there.
func (t *Tally) fillSubmit(line int, p *record.HistoryJob, eligible time.Time) {
	p.Submitted = p.Started
	if !eligible.IsZero() && !eligible.After(p.Started) {
		p.Submitted = eligible
	}
	t.noteLine(line, kindNoSubmit, fmt.Errorf("job %s: taken as %s", p.JobID, timeText(p.Submitted)))
}

// limitOrNote returns a job's time limit, noted where it has none.
func (t *Tally) limitOrNote(line int, job string, l live.Limit) live.Limit {
	switch {
	case l.IsUnlimited():
		t.noteLine(line, kindUnlimited, fmt.Errorf("job %s: UNLIMITED", job))
	case !l.IsSet():
		t.noteLine(line, kindNoLimit, fmt.Errorf("job %s: neither a time nor UNLIMITED", job))
	}
	return l
}

// addUnfinished counts a job that isn't over, or whose state nobody knows, and hands over one that waits.
func (s *jobSink) addUnfinished(o *slurm.AccountingRecord, line int) error {
	state := o.State.Base
	if !isUnderway(state) {
		return s.tally.skipLine(line, kindState, fmt.Errorf("%s, want one of Slurm's", printable(string(state))))
	}
	s.tally.NotEnded++
	if state != slurm.Pending || s.waiting == nil || o.Submit.IsZero() {
		return nil
	}
	o.Start = time.Time{} // when Slurm expects it to start
	return s.waiting(s.tally.pastOf(line, o, false))
}

// measuredOrUnknown returns a quantity of which 0 says that nothing was measured.
func measuredOrUnknown(v float64) live.Number {
	if v > 0 {
		return live.Known(v)
	}
	return live.Number{}
}

// roundedShare returns a measured part of 1, without what sums leave behind its sixth digit.
func roundedShare(v float64) live.Number {
	const digits = 1e6
	return measuredOrUnknown(math.Round(v*digits) / digits)
}

// refText returns a job's id as sacct prints it.
func refText(r *slurm.JobRef) string {
	id := r.Job.String()
	switch {
	case r.Het:
		return id + "+" + strconv.Itoa(r.HetOffset)
	case r.Array && r.Task >= 0:
		return id + "_" + strconv.Itoa(r.Task)
	}
	return id
}
