package joblog

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// readJSON reads what sacct --json prints.
func readJSON(r io.Reader, name string, o *Options, visit Visit) (*Tally, error) {
	t := newTally(name, o)
	to := newJobSink(t, o, visit)
	var stopped error // by the visit or because of strictness
	meta, err := slurm.ReadAccountingJSON(name, r,
		func(line int, job *slurm.AccountingRecord, err error) error {
			switch {
			case err != nil:
				stopped = t.skipLine(line, kindRecord, err)
			case !isOver(job.State.Base):
				stopped = t.countUnfinished(line, job.State.Base)
			default:
				stopped = to.add(t.pastOf(line, job), line)
			}
			return stopped
		})
	switch {
	case stopped != nil:
		return t, stopped
	case err != nil:
		return t, err
	case len(meta.Errors) > 0:
		return t, fmt.Errorf("%s: sacct failed: %s", name, strings.Join(meta.Errors, "; "))
	}
	return t, nil
}

// pastOf is a job as history keeps it.
func (t *Tally) pastOf(line int, o *slurm.AccountingRecord) *record.HistoryJob {
	p := &record.HistoryJob{
		Cluster: o.Cluster, JobID: refText(&o.Ref), Submitted: o.Submit, Started: o.Start, Ended: o.End,
		User: o.User, Account: o.Account, Partition: o.Partition, QOS: o.QOS,
		Name:  []byte(o.Name[:min(len(o.Name), maxName)]),
		State: string(o.State.Base), ExitCode: live.Known(float64(o.Exit.Code)),
		Limit:   t.limitOrNote(line, refText(&o.Ref), o.TimeLimit),
		EnergyJ: measuredOrUnknown(o.Energy), Utilisation: roundedShare(o.Utilisation),
	}
	tres := o.Allocated
	if len(tres) == 0 {
		tres = o.Requested
	}
	useTRES(p, tres)
	if p.Submitted.IsZero() {
		t.fillSubmit(line, p, o.Eligible)
	}
	return p
}

// kindNoSubmit takes another time for a submit time that isn't there.
func (t *Tally) fillSubmit(line int, p *record.HistoryJob, eligible time.Time) {
	p.Submitted = p.Started
	if !eligible.IsZero() && !eligible.After(p.Started) {
		p.Submitted = eligible
	}
	t.noteLine(line, kindNoSubmit, fmt.Errorf("job %s: taken as %s", p.JobID, timeText(p.Submitted)))
}

// limitOrNote is a job's time limit, noted where it has none.
func (t *Tally) limitOrNote(line int, job string, l live.Limit) live.Limit {
	switch {
	case l.IsUnlimited():
		t.noteLine(line, kindUnlimited, fmt.Errorf("job %s: UNLIMITED", job))
	case !l.IsSet():
		t.noteLine(line, kindNoLimit, fmt.Errorf("job %s: neither a time nor UNLIMITED", job))
	}
	return l
}

// countUnfinished counts a job that isn't over, or whose state nobody knows.
func (t *Tally) countUnfinished(line int, state slurm.State) error {
	if !isUnderway(state) {
		return t.skipLine(line, kindState, fmt.Errorf("%s, want one of Slurm's", printable(string(state))))
	}
	t.NotEnded++
	return nil
}

// measuredOrUnknown is a quantity of which 0 says that nothing was measured.
func measuredOrUnknown(v float64) live.Number {
	if v > 0 {
		return live.Known(v)
	}
	return live.Number{}
}

// roundedShare is a measured part of 1, without what sums leave behind its sixth digit.
func roundedShare(v float64) live.Number {
	const digits = 1e6
	return measuredOrUnknown(math.Round(v*digits) / digits)
}

// refText is a job's id as sacct prints it.
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
