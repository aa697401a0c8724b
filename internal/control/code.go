package control

import (
	"bytes"
	"fmt"
	"io"
	"net/http"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/forecast"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/slurm"
)

// decodeCode reads a submission and what comes with it of its code; nil: nothing.
func decodeCode(r io.Reader) (slurm.Submission, *epdapi.Code, error) {
	data, err := io.ReadAll(io.LimitReader(r, slurm.MaxMessage+1)) // DecodeSubmission refuses more
	if err != nil {
		return slurm.Submission{}, nil, err
	}
	s, err := slurm.DecodeSubmission(bytes.NewReader(data))
	if err != nil {
		return s, nil, err
	}
	var more struct {
		Code *epdapi.Code `json:"code"`
	}
	if err := DecodeJSON(bytes.NewReader(data), &more); err != nil {
		return s, nil, err
	}
	if more.Code != nil {
		if err := forecast.CheckCode(more.Code); err != nil {
			return s, more.Code, fmt.Errorf("%w: %w", ErrRequest, err)
		}
	}
	return s, more.Code, nil
}

func (c *Controller) postCode(r *http.Request) (any, error) {
	s, code, err := decodeCode(r.Body)
	if err != nil {
		return nil, err
	}
	if code == nil {
		return nil, fmt.Errorf("%w: it says nothing of code", ErrRequest)
	}
	if who := CallerOf(r.Context()); !who.Control {
		s.UID = who.UID
	}
	return epdapi.CodeAnswer{Kept: c.announce(&s, code), WantsText: c.wantsText(&s, code)}, nil
}

// announce keeps what is told of the code of a job, unless predictions are off or the
// job doesn't want it.
func (c *Controller) announce(s *slurm.Submission, code *epdapi.Code) bool {
	if code == nil || slurm.ParseWishes(string(s.Comment), c.options.Clock()).NoCode {
		return false
	}
	script := scriptHash(s.Script)
	sources := []string{jobs.SourceOf(s.UID, script, string(s.Name)).String()}
	if script != "" && c.counters.scripts.Load() == 0 { // job_submit may send no scripts
		sources = append(sources, jobs.SourceOf(s.UID, "", string(s.Name)).String())
	}
	return c.forecasts.Announce(s.UID, sources, code)
}

// wantsText reports whether the text of a code is wanted, too.
func (c *Controller) wantsText(s *slurm.Submission, code *epdapi.Code) bool {
	return code != nil && c.forecasts.WantsText(code) &&
		!slurm.ParseWishes(string(s.Comment), c.options.Clock()).NoCode
}
