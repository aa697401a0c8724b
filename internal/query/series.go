package query

import (
	"context"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// Series returns the time series of the runs under a job id that a caller may see: of those
// that ended what their agents recorded, of those that last what was reported of them
// last. The error is [store.ErrNotFound] if there is no such job.
func (s *Service) Series(ctx context.Context, who Caller, id slurm.JobID) (*epdapi.JobSeries, error) {
	h, _, err := s.reader.visibleHistory(ctx, who, id)
	if err != nil {
		return nil, err
	}
	readings, err := s.options.Records.Jobs.Readings(ctx, s.options.Cluster, int64(id))
	if err != nil {
		return nil, err
	}
	out := &epdapi.JobSeries{Runs: []epdapi.RunSeries{}}
	over := make(map[record.RunKey]bool)
	for i := range h.outcomes {
		o := &h.outcomes[i]
		over[o.Key()] = true
		out.Runs = append(out.Runs, endedSeries(o, readings[o.Key()]))
	}
	for i := range h.decisions {
		if d := &h.decisions[i]; !over[d.Key()] {
			over[d.Key()] = true
			out.Runs = append(out.Runs, s.reader.openSeries(d))
		}
	}
	return out, nil
}

func endedSeries(o *record.Outcome, r record.Readings) epdapi.RunSeries {
	s := epdapi.RunSeries{
		RunID: o.RunID, Node: o.Node, GPUModel: o.GPUModel, GPUs: len(o.GPUs), Started: o.Started,
		Ended: o.Ended, At: o.Ended,
		Setting: o.Setting, Utilisation: seriesOf(&o.Series),
	}
	switch {
	case !r.IsZero():
		s.GPUs = r.GPUs
	case o.Unmatched:
		s.Missing = "its start wasn't seen"
	default:
		s.Missing = "its agent recorded none: it was too old, or nothing could be read"
	}
	s.Power, s.Core = bands(&r)
	return s
}

// openSeries returns the series of a run whose end nobody told of yet.
func (r *reader) openSeries(d *record.Decision) epdapi.RunSeries {
	s := epdapi.RunSeries{
		RunID: d.RunID, Node: d.Node, GPUModel: d.GPUModel, Started: d.Created,
		Utilisation: seriesOf(&record.Series{}),
	}
	s.Power, s.Core = bands(&record.Readings{})
	heard := r.options.Reports.Of(d.Node)
	if heard == nil {
		s.Missing = "its node's agent hasn't reported since epd began"
		return s
	}
	run := heard.Run(d.RunID)
	if run == nil || run.Ended {
		s.Missing = "its node's agent doesn't report it, and its outcome hasn't come yet"
		return s
	}
	s.Live, s.Started, s.At, s.GPUs = true, run.Started, heard.Message.At, len(run.GPUs)
	s.Setting = run.CurrentSetting()
	readings := heard.Readings(run)
	if readings.IsZero() {
		s.Missing = "it began a moment ago, or its GPUs can't be read"
		return s
	}
	s.Power, s.Core = bands(&readings)
	return s
}

// bands are power and core clock for whoever asks.
func bands(r *record.Readings) (power, core epdapi.Band) {
	of := func(points []record.ValueRange) epdapi.Band {
		b := epdapi.Band{IntervalS: float64(r.Interval) / float64(time.Second)}
		b.Mean, b.Low, b.High = record.Columns(points)
		return b
	}
	return of(r.Power), of(r.Core)
}
