package joblog

import (
	"fmt"
	"io"
	"strings"

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
				stopped = to.addUnfinished(job, line)
			default:
				stopped = to.add(t.pastOf(line, job, true), line)
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
