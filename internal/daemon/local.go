package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/control"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/gpu"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// Local is a controller in this process.
type Local struct {
	Control *control.Controller
	Cluster string
	// Job asks Slurm about a job; nil: nobody is asked.
	Job func(ctx context.Context, id slurm.JobID) (slurm.Job, error)
}

var _ Controller = (*Local)(nil)

// Decide asks the controller for a run's clocks.
func (l *Local) Decide(ctx context.Context, q *Question) (Decision, error) {
	e := q.Event
	request := control.DecideRequest{
		Job: e.Job, Node: e.Node, RunID: q.RunID, GPUModel: q.Model, GPUs: q.GPUs, Shared: q.Shared,
		Clocks: groups(&q.Clocks), UID: e.UID, User: e.User, Partition: e.Partition, Comment: e.Comment,
	}
	answer, err := l.Control.Decide(ctx, &request)
	if err != nil {
		return Decision{}, err
	}
	d := Decision{
		Wish:   agent.Wish{OptOut: answer.Wish.OptOut, Fixed: answer.Wish.Fixed},
		Limit:  seconds(answer.LimitS),
		Upper:  seconds(answer.Upper),
		Reason: fmt.Sprintf("%s: %s", answer.Mode, answer.Reason),
	}
	if answer.Apply {
		d.Setting = agent.Setting{Core: answer.Core, Mem: answer.Mem}
	}
	return d, nil
}

func groups(table *gpu.Clocks) []control.ClockGroup {
	list := make([]control.ClockGroup, len(table.Mem))
	for i, mem := range table.Mem {
		list[i] = control.ClockGroup{Mem: mem, Core: table.Core[i]}
	}
	return list
}

// seconds is a time that may be unknown; 0 then.
func seconds(n record.Number) time.Duration {
	const longest = 100 * 365 * 24 * 3600.0
	return time.Duration(min(max(n.Or(0), 0), longest) * float64(time.Second))
}

// patience is how long an outcome waits for Slurm to say how its job ended.
const patience = time.Minute

// Record hands an outcome to the controller. How the job ended is what Slurm
// says once its Epilogs are done; the Epilog itself isn't told of time limits
// and cancellations.
func (l *Local) Record(ctx context.Context, c *agent.Closed, exit slurm.State) error {
	o := outcomeOf(c)
	o.Cluster, o.ExitState = l.Cluster, string(exit)
	if l.Job != nil {
		job, err := l.Job(ctx, slurm.JobID(c.Run.Job))
		switch {
		case err == nil && job.State.Base.Ended():
			o.Submitted, o.Restart, o.ExitState = job.Submit, job.Restarts, string(job.State.Base)
		case time.Since(c.Outcome.Ended) < patience:
			return ErrNotYet
		}
	}
	_, err := l.Control.Record(ctx, o)
	if errors.Is(err, record.ErrInvalid) {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return err
}

// Unmatched records the end of a job whose start wasn't seen. It is in no
// statistics.
func (l *Local) Unmatched(ctx context.Context, e *slurm.HookEvent, run string) error {
	_, err := l.Control.Record(ctx, &record.Outcome{
		Cluster: l.Cluster, RunID: run, JobID: int64(e.Job), Node: e.Node, Ended: time.Now(), Arm: record.Excluded, Unmatched: true,
	})
	return err
}

// outcomeOf is what a run came to, in the store's terms.
func outcomeOf(c *agent.Closed) *record.Outcome {
	out := &record.Outcome{
		RunID: c.Run.ID, JobID: int64(c.Run.Job), Node: c.Run.Node,
		Started: c.Run.Started, Ended: c.Outcome.Ended, GPUs: c.Run.GPUs,
		ThrottledS: map[string]float64{},
	}
	if c.HandsOff == "" {
		out.Setting = record.Setting{Core: c.Run.Setting.Core, Mem: c.Run.Setting.Mem}
	}
	if !c.Outcome.Partial {
		out.TimeS = record.Known(c.Outcome.Ended.Sub(c.Run.Started).Seconds())
	}
	sum := totals{source: record.Counter}
	for i := range c.Outcome.GPUs {
		sum.add(&c.Outcome.GPUs[i], out)
	}
	sum.fill(out, c.Outcome.Partial)
	out.Series = seriesOf(c.Outcome.GPUs)
	return out
}

// seriesOf is the mean utilisation of a run's GPUs over time, in the longest of
// their steps.
func seriesOf(gpus []agent.GPUOutcome) record.Series {
	step := 0.0
	for i := range gpus {
		step = max(step, gpus[i].Series.Step)
	}
	if step == 0 {
		return record.Series{}
	}
	at := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	mean := record.NewSampler(at(step))
	for i := range gpus {
		s := &gpus[i].Series
		for k, value := range s.Values {
			if value >= 0 {
				mean.Add(at((float64(k)+0.5)*s.Step), value)
			}
		}
	}
	return mean.Series()
}

// totals add up a run's GPUs.
type totals struct {
	energy, power, peak, usage float64
	memory                     int64
	gpus                       int
	source                     record.Source
}

func (t *totals) add(g *agent.GPUOutcome, out *record.Outcome) {
	if g.Samples == 0 || g.EnergyFrom == agent.SourceNone {
		t.source = record.Unmeasured
	} else if g.EnergyFrom == agent.SourceIntegrated && t.source == record.Counter {
		t.source = record.Integrated
	}
	t.energy += float64(max(g.Energy, 0))
	t.power += float64(max(g.MeanPower, 0))
	t.peak += float64(max(g.PeakPower, 0))
	t.usage += max(g.Utilisation, 0)
	t.memory = max(t.memory, g.PeakMem)
	t.gpus++
	for _, clock := range g.Clocks {
		out.Clocks = append(out.Clocks, record.ClockShare{Setting: record.Setting{Core: clock.Core, Mem: clock.Mem}, Seconds: clock.Seconds})
	}
	for reason, spent := range map[string]float64{"power-cap": g.PowerCapped, "thermal": g.Thermal, "hardware": g.Hardware} {
		if spent > 0 {
			out.ThrottledS[reason] += spent
		}
	}
}

func (t *totals) fill(out *record.Outcome, partial bool) {
	if t.gpus == 0 || t.source == record.Unmeasured {
		return
	}
	if !partial {
		out.GPUEnergyJ, out.GPUSource = record.Known(t.energy), t.source
	}
	out.MeanPowerW, out.PeakPowerW = record.Known(t.power), record.Known(t.peak)
	out.Utilisation = record.Known(t.usage / float64(t.gpus))
	if t.memory >= 0 {
		out.PeakMemoryBytes = record.Known(float64(t.memory))
	}
}

// Totals count what the controller did since its start.
func (l *Local) Totals(ctx context.Context) (epdapi.Totals, error) {
	s := l.Control.Status(ctx)
	return epdapi.Totals{Decisions: s.Decisions, Outcomes: s.Outcomes, Models: int64(s.Models)}, nil
}
