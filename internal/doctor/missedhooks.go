package doctor

import (
	"context"
	"strconv"

	"github.com/epplan/epplan/slurm/hooks"
)

var prologMissed = &Fault{
	"prolog-missed", Bad, "{count} jobs with GPUs started on {node} since {since}, and no Prolog of " +
		"theirs reached the agent; the last is {job}",
	"they run at default clocks and aren't recorded",
	Fix{
		Run: "ssh {node} journalctl -t epplan -t slurmd    # then there: epplan doctor; may slurmd run the " +
			"Prolog's program (mode, noexec, SELinux)?",
	},
}

var submitMissed = &Fault{
	"submit-missed", Bad, "{count} of {all} jobs with GPUs were submitted without a call of epplan.lua",
	"their scripts are unknown, and users' requests are read late",
	Fix{
		Run: "grep -n epplan /etc/slurm/job_submit.lua    # our line must run for each job, before any " +
			"return; then slurmctld's log (epplan: no plan)",
	},
}

// checkMissedHooks asks the controller, which knows Slurm's jobs, whose hooks never reached epd.
func checkMissedHooks(ctx context.Context, e *examination) []Finding {
	_, c, err := e.controllerStatus(ctx)
	if err != nil {
		return unknownFinding("%v", err)
	}
	var found []Finding
	for i := range c.MissedPrologs {
		m := &c.MissedPrologs[i]
		found = append(found, prologMissed.finding("count", strconv.FormatInt(m.Jobs, 10), "node",
			hooks.ShellQuote(m.Node), "since", m.Since.Local().Format("2006-01-02 15:04"), "job", m.Last.String())...)
	}
	if c.LacksSubmitCall() {
		found = append(found, submitMissed.finding("count", strconv.FormatInt(c.TokensMissing, 10), "all",
			strconv.FormatInt(c.TokensMissing+c.TokensSeen, 10))...)
	}
	return orOK(found, "of all jobs that started or were submitted since epd's start, as far as Slurm told")
}
