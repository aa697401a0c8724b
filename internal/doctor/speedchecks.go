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
	"job-slow", Bad, "Slurm doesn't report one job within {bound}, epd's timeout, in {tries} tries",
	"jobs that start at once run at default clocks, and runs without an Epilog stay open",
	Fix{
		Run: "sdiag    # shows slurmctld's load and who causes it; squeue --jobs={job} must answer within " +
			"{bound}",
	},
}

var queueSlow = &Fault{
	"queue-slow", Warn, "Slurm doesn't list its jobs within {bound}",
	"epd waits {wait} for it, then pauses for nine times as long as it took, and uses an old list meanwhile",
	Fix{
		Run: "scontrol show config | grep MinJobAge    # seconds for which ended jobs are listed, 300 will " +
			"do; sdiag shows slurmctld's load",
	},
}

// maxJobTries is how often Slurm is asked about one job: a moment in which the machine is
// busy is no fault.
const maxJobTries = 3

// checkSpeed puts epd's two questions to Slurm and times the answers.
func checkSpeed(ctx context.Context, e *examination) []Finding {
	if e.site.Slurm == nil {
		return skipFinding("%v", errNoSlurm)
	}
	if _, err := e.munge(ctx); err != nil {
		return unknownFinding("munge doesn't work, and without it nobody can ask")
	}
	if _, err := e.ping(ctx); err != nil {
		return unknownFinding("slurmctld doesn't answer")
	}
	jobs, job := 0, slurm.JobID(1) // that there is none is an answer, too
	all, err := timeCall(func() error {
		_, err := e.site.client().EachJob(ctx, func(j *slurm.Job) error {
			jobs, job = jobs+1, j.ID
			return nil
		})
		return err
	})
	var found []Finding
	switch {
	case isTimeout(err):
		found = append(found,
			queueSlow.finding("bound", slurmTimeout.String(), "wait", epdapi.ListWait.String())...)
	case err != nil:
		return unknownFinding("squeue: %v", err)
	}
	var one time.Duration
	client := slurm.NewClient(e.site.Slurm, epdapi.JobWait) // as epd's
	for tried := 0; tried == 0 || tried < maxJobTries && isTimeout(err); tried++ {
		one, err = timeCall(func() error {
			_, err := client.Job(ctx, job)
			return err
		})
	}
	switch {
	case isTimeout(err):
		found = append(found, jobSlow.finding("bound", epdapi.JobWait.String(), "tries",
			strconv.Itoa(maxJobTries), "job", job.String())...)
	case err != nil && !errors.Is(err, slurm.ErrNotFound):
		return append(found, unknownFinding("%v", err)...)
	}
	return orOK(found, "Slurm tells of one job in %v, and of all %d in %v", one.Round(time.Millisecond), jobs,
		all.Round(time.Millisecond))
}

func timeCall(do func() error) (time.Duration, error) {
	began := time.Now()
	err := do()
	return time.Since(began), err
}
