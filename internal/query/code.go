package query

import (
	"context"
	"fmt"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// Code keeps what is told of the code of a job that is about to be submitted: users tell
// it of their own jobs, whatever the submission says.
func (s *Service) Code(
	_ context.Context, who Caller, job *hooks.Submission, code *epdapi.Code,
) (epdapi.CodeAnswer, error) {
	if code == nil {
		return epdapi.CodeAnswer{}, fmt.Errorf("%w: it says nothing of code", epdapi.ErrRequest)
	}
	own := *job
	if !who.Admin {
		own.UID = who.UID
	}
	return epdapi.CodeAnswer{
		Kept: s.reader.announce(&own, code), WantsText: s.reader.wantsText(&own, code),
	}, nil
}

// announce keeps what is told of the code of a job, unless predictions are off or the
// job doesn't want it.
func (r *reader) announce(job *hooks.Submission, code *epdapi.Code) bool {
	if code == nil || slurm.ParseWishes(string(job.Comment), r.options.Clock()).NoCode {
		return false
	}
	script := jobs.ScriptHash(job.Script)
	sources := []string{jobs.SourceOf(job.UID, script, string(job.Name)).String()}
	if script != "" && !r.options.Scripted() { // job_submit may send no scripts
		sources = append(sources, jobs.SourceOf(job.UID, "", string(job.Name)).String())
	}
	return r.options.Forecasts.Announce(job.UID, sources, code)
}

// wantsText reports whether the text of a code is wanted, too.
func (r *reader) wantsText(job *hooks.Submission, code *epdapi.Code) bool {
	return code != nil && r.options.Forecasts.WantsText(code) &&
		!slurm.ParseWishes(string(job.Comment), r.options.Clock()).NoCode
}
