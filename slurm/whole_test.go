package slurm_test

import (
	"bytes"

	"github.com/epplan/epplan/slurm"
)

// parseJobs is [slurm.ScanJobs] of a whole answer.
func parseJobs(source string, data []byte) ([]slurm.Job, slurm.Meta, error) {
	var jobs []slurm.Job
	meta, err := slurm.ScanJobs(source, bytes.NewReader(data), func(j *slurm.Job) error {
		jobs = append(jobs, *j)
		return nil
	})
	if err != nil {
		return nil, slurm.Meta{}, err
	}
	return jobs, meta, nil
}

// parseAccountingJSON is [slurm.ReadAccountingJSON] of a whole answer, in which every
// job must make sense.
func parseAccountingJSON(source string, data []byte) ([]slurm.AccountingRecord, slurm.Meta, error) {
	var out []slurm.AccountingRecord
	meta, err := slurm.ReadAccountingJSON(source, bytes.NewReader(data),
		func(_ int, o *slurm.AccountingRecord, err error) error {
			if err == nil {
				out = append(out, *o)
			}
			return err
		})
	if err != nil {
		return nil, slurm.Meta{}, err
	}
	return out, meta, nil
}
