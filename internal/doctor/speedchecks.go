package doctor

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/slurm"
)

var jobSlow = &Fault{
	"job-slow", Bad, "Slurm doesn't tell of one job within {bound}, as long as epd waits, in {tries} tries",
	"jobs that start as soon as they are submitted run at default clocks, and runs whose Epilog was lost stay open",
	Fix{Run: "sdiag    # what slurmctld is busy with, and who asks so much; squeue --jobs={job} must answer within {bound}"},
}

var queueSlow = &Fault{
	"queue-slow", Warn, "Slurm doesn't list its jobs within {bound}",
	"epd waits {wait} for the list and leaves Slurm alone for nine times as long as it took: meanwhile it steers by an old one",
	Fix{Run: "scontrol show config | grep MinJobAge    # so many seconds ended jobs are listed, 300 will do; sdiag tells what slurmctld is busy with"},
}

// jobTries is how often Slurm is asked about one job: a moment in which the machine is
// busy is no fault.
const jobTries = 3

// lookSpeed puts epd's two questions to Slurm and times the answers.
func lookSpeed(ctx context.Context, e *exam) []Finding {
	if e.site.Slurm == nil {
		return skip("%v", errNoSlurm)
	}
	if _, err := e.munge(ctx); err != nil {
		return unknown("munge doesn't work, and without it nobody can ask")
	}
	if _, err := e.ping.ask(ctx); err != nil {
		return unknown("slurmctld doesn't answer")
	}
	jobs, job := 0, slurm.JobID(1) // that there is none is an answer, too
	all, err := timed(func() error {
		return e.client().EachJob(ctx, func(j *slurm.Job) error {
			jobs, job = jobs+1, j.ID
			return nil
		})
	})
	var found []Finding
	switch {
	case late(err):
		found = append(found, queueSlow.found("bound", slurmBound.String(), "wait", epdapi.QueueWait.String()))
	case err != nil:
		return unknown("squeue: %v", err)
	}
	var one time.Duration
	client := slurm.NewClient(e.site.Slurm, epdapi.JobWait) // as epd's
	for tried := 0; tried == 0 || tried < jobTries && late(err); tried++ {
		one, err = timed(func() error {
			_, err := client.Job(ctx, job)
			return err
		})
	}
	switch {
	case late(err):
		found = append(found, jobSlow.found("bound", epdapi.JobWait.String(), "tries", strconv.Itoa(jobTries), "job", job.String()))
	case err != nil && !errors.Is(err, slurm.ErrNotFound):
		return append(found, unknown("%v", err)...)
	}
	return orFine(found, "Slurm tells of one job in %v, and of all %d in %v", one.Round(time.Millisecond), jobs, all.Round(time.Millisecond))
}

// timed is how long something took.
func timed(do func() error) (time.Duration, error) {
	began := time.Now()
	err := do()
	return time.Since(began), err
}
