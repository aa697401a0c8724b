package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/learn"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// MaxQueryLength is how long a query may be, bytes.
const MaxQueryLength = 4096

// ParseJobs reads the query of a path that asks for jobs. The error is
// [epdapi.ErrRequest].
func ParseJobs(raw string) (*epdapi.JobQuery, error) {
	if len(raw) > MaxQueryLength {
		return nil, ErrLongQuery
	}
	q, _ := url.ParseQuery(raw) // what can't be read is left out
	asked := &epdapi.JobQuery{
		User: q.Get("user"), Account: q.Get("account"), Partition: q.Get("partition"),
		Workload: q.Get("workload"), State: q.Get("state"),
	}
	var err error
	if asked.Before, err = ParseNumber(q.Get("before"), 0, 1<<62); err != nil {
		return nil, err
	}
	if asked.Limit, err = ParseLimit(q.Get("limit")); err != nil {
		return nil, err
	}
	asked.Since, err = ParseTime(q, "since")
	return asked, err
}

// Jobs lists the jobs that a query asks for and that a caller may see.
func (s *Service) Jobs(ctx context.Context, who Caller, q *epdapi.JobQuery) (*epdapi.JobPage, error) {
	answer := &epdapi.JobPage{Jobs: []epdapi.JobRow{}}
	filter := &store.JobFilter{
		Cluster: s.options.Cluster, User: q.User, Account: q.Account, Partition: q.Partition,
		Workload: q.Workload,
		State:    q.State, From: q.Since,
	}
	if !who.canSeeAll() {
		if filter.User == "" {
			filter.User = who.recordName()
		}
		if filter.User == "" || !who.canSee(filter.User) {
			return answer, nil
		}
	}
	page, err := s.options.Records.Jobs.JobRows(ctx, filter, q.Before,
		min(cmp.Or(max(q.Limit, 0), pageSize), maxPage))
	if err != nil {
		return nil, err
	}
	for i := range page.Jobs {
		answer.Jobs = append(answer.Jobs, rowOf(&page.Jobs[i]))
	}
	s.reader.addReported(answer.Jobs)
	for i := range answer.Jobs {
		s.reader.addArrayID(&answer.Jobs[i].Job)
	}
	answer.Next = page.Next
	return answer, nil
}

// reader reads what there is of jobs and nodes, for callers who may see it, and says what
// jobs would take if they ran now.
type reader struct{ options *Options }

// addReported adds to jobs that aren't over the clocks that agents report of their
// runs.
func (r *reader) addReported(rows []epdapi.JobRow) {
	open := make(map[int64]*epdapi.JobRow)
	for i := range rows {
		if jobs.Open(rows[i].State) {
			open[rows[i].ID] = &rows[i]
		}
	}
	if len(open) == 0 {
		return
	}
	for _, h := range r.options.Reports.All() {
		for i := range h.Message.Runs {
			run := &h.Message.Runs[i]
			row := open[int64(run.Job)]
			// Of an earlier job of the id.
			if row == nil || run.Started.Before(row.Submitted.Add(-jobs.Skew)) {
				continue
			}
			if has := run.CurrentSetting(); !slices.Contains(row.Locked, has) {
				row.Locked = append(row.Locked, has)
			}
		}
	}
	for _, row := range open {
		slices.SortFunc(row.Locked, dvfsmodel.Setting.Compare)
	}
}

// rowOf returns a job of a list for whoever asks.
func rowOf(j *store.ListedJob) epdapi.JobRow {
	row := epdapi.JobRow{
		Job: *jobOf(&j.Job), Mode: j.Mode, Arm: j.Arm, Setting: j.Setting, Locked: j.Locked, Runs: j.Runs,
		TimeS: j.TimeS, EnergyJ: j.EnergyJ, Restarted: j.Restarted,
	}
	row.State = j.Shown
	return row
}

// Job is everything that is known of a job and that a caller may see. The error is
// [store.ErrNotFound] if there is nothing.
func (s *Service) Job(ctx context.Context, who Caller, id slurm.JobID) (*epdapi.JobView, error) {
	h, live, err := s.reader.visibleHistory(ctx, who, id)
	if err != nil {
		return nil, err
	}
	settings := s.options.Settings()
	view := &epdapi.JobView{
		ConfigVersion: settings.Version, Decisions: []epdapi.Decision{}, Outcomes: []epdapi.Outcome{},
		Objective: epdapi.Objective{
			EnergyWeight: settings.Goal.Objective.EnergyWeight, TimeWeight: settings.Goal.Objective.TimeWeight,
			DelayPower: float64(settings.Goal.Objective.DelayPower), Currency: settings.Goal.Currency,
		},
	}
	if len(h.jobs) > 0 {
		if err := s.reader.viewLatest(ctx, view, h, live); err != nil {
			return nil, err
		}
	}
	view.MissedProlog = s.options.Tracker.Hooks.MissedProlog(id)
	for i := range h.decisions {
		d, err := s.reader.viewDecision(ctx, settings, &h.decisions[i])
		if err != nil {
			return nil, err
		}
		view.Decisions = append(view.Decisions, d)
	}
	for i := range h.outcomes {
		view.Outcomes = append(view.Outcomes, epdapi.Outcome{
			Outcome: h.outcomes[i], Series: seriesOf(&h.outcomes[i].Series),
		})
	}
	return view, nil
}

// visibleHistory is everything under a job id that a caller may see, and the job as Slurm has
// it now; nil: it doesn't. The error is [store.ErrNotFound] if there is nothing.
func (r *reader) visibleHistory(
	ctx context.Context,
	who Caller,
	id slurm.JobID,
) (*history, *jobs.Job, error) {
	h, err := r.history(ctx, int64(id))
	if err != nil {
		return nil, nil, err
	}
	live := r.options.Tracker.Get(id)
	if live != nil {
		if live, err = r.options.Tracker.WithSubmission(ctx, live); err != nil {
			return nil, nil, err
		}
		if live.Submitted > 0 {
			h.add(live.LiveRecord(r.options.Cluster, id))
		}
	}
	h = h.visibleTo(who)
	if len(h.jobs)+len(h.decisions)+len(h.outcomes) == 0 {
		return nil, nil, fmt.Errorf("job %d: %w", id, store.ErrNotFound)
	}
	return h, live, nil
}

// viewLatest fills in the job that was submitted last. live is what Slurm says
// of the id now; nil: nothing.
func (r *reader) viewLatest(ctx context.Context, view *epdapi.JobView, h *history, live *jobs.Job) error {
	latest := &h.jobs[0]
	view.Job = jobOf(latest)
	own := h.submission(latest.Submitted)
	view.Job.State = own.endState(latest.State)
	r.addArrayID(view.Job)
	if latest.Token != "" {
		d, err := r.options.Records.Jobs.DecisionByToken(ctx, r.options.Cluster, latest.Token)
		switch {
		case err == nil:
			view.Submission = &d
		case !errors.Is(err, store.ErrNotFound):
			return err
		}
	}
	if live == nil || live.Submitted != latest.Submitted.Unix() {
		return nil
	}
	// Records have it to the microsecond.
	if math.Abs(live.Limit.Seconds()-latest.Limit.Seconds()) > 1e-3 { // somebody changed it since
		view.LimitNow = &live.Limit
	}
	wishes := slurm.ParseWishes(live.Comment.Value(), latest.Submitted)
	view.Wishes = requestsOf(&wishes, live.OwnFreq)
	view.Plan = r.plannedFor(slurm.JobID(latest.ID), live) //nolint:gosec // ids of Slurm's have 32 bits
	if len(own.decisions) == 0 {
		view.Estimate = r.estimateJob(live, false, "")
	}
	return nil
}

// requestsOf returns a user's wishes, nil without any.
func requestsOf(w *slurm.Wishes, ownFreq bool) *epdapi.Wishes {
	if !w.Off && !ownFreq && !w.IsFixed() && w.Deadline.IsZero() && w.Slowdown == 0 &&
		len(w.Warnings) == 0 {
		return nil
	}
	return &epdapi.Wishes{
		OptOut: w.Off, OwnFreq: ownFreq, CoreMHz: w.CoreMHz, MemMHz: w.MemoryMHz, CapW: w.CapW,
		Deadline: w.Deadline, Slowdown: w.Slowdown, Warnings: nonNil(w.Warnings),
	}
}

// viewDecision adds to a decision what the model it was made by predicts.
func (r *reader) viewDecision(
	ctx context.Context, settings *Settings, d *record.Decision,
) (epdapi.Decision, error) {
	out := epdapi.Decision{Decision: *d}
	m, err := r.options.Learner.Version(ctx,
		record.WorkloadKey{Cluster: d.Cluster, Workload: d.Workload, GPUModel: d.GPUModel}, d.ModelVersion)
	if err != nil || m == nil {
		return out, err
	}
	gpus := 1.0
	if one := d.PowerW.Value.Or(0) * d.TimeS.Value.Or(0); one > 0 {
		gpus = max(1, math.Round(d.EnergyJ.Value.Or(0)/one))
	}
	at := predictor{settings: settings, model: m, gpuModel: d.GPUModel, gpus: gpus}
	out.Model, out.Default = m.Summary(), at.point(m.Base.Core, m.Base.Mem)
	if d.Setting.Core > 0 || d.Setting.Cap > 0 {
		out.Chosen = at.point(cmp.Or(d.Setting.Core, m.Base.Core), cmp.Or(d.Setting.Mem, m.Base.Mem))
	}
	if d.Setting.Cap > 0 {
		at.underLimit(out.Chosen, d.Setting.Cap, d.TimeS, d.PowerW.Value, d.EnergyJ.Value)
	}
	return out, nil
}

// underLimit makes a point at clocks one under a power limit too, with what was decided by: what a limit
// allows is left to the decision. Power is of one GPU, the energy of all.
func (p *predictor) underLimit(
	pt *epdapi.Point, limit dvfsmodel.Watt, took record.Interval, power, energy live.Number,
) {
	pt.Cap, pt.TimeS, pt.UpperS = limit, took.Value.Or(pt.TimeS), took.High.Or(pt.UpperS)
	pt.EnergyJ = energy.Or(pt.EnergyJ)
	pt.PowerW = power.Or(0) * p.gpus
	pt.LowerS = min(pt.LowerS, pt.TimeS)
	pt.HostJ = float64(p.settings.HostW(p.gpuModel).Over(pt.TimeS)) * p.gpus
}

// predictor says what a job's GPUs would take at given clocks.
type predictor struct {
	settings *Settings
	model    *learn.Model
	gpuModel string
	gpus     float64
}

func (p *predictor) point(core, mem dvfsmodel.MHz) *epdapi.Point {
	pt := p.model.At(core, mem)
	margin := p.settings.Live.TimeMargin
	host := p.settings.HostW(p.gpuModel).Over(pt.Time)
	return &epdapi.Point{
		Setting: dvfsmodel.Setting{Core: core, Mem: mem}, TimeS: pt.Time,
		LowerS: p.model.LowerTime(&pt, margin), UpperS: p.model.UpperTime(&pt, margin),
		PowerW: float64(pt.Power) * p.gpus, EnergyJ: float64(pt.Energy) * p.gpus,
		HostJ: float64(host) * p.gpus,
	}
}

// seriesOf returns a series as numbers.
func seriesOf(s *record.Series) epdapi.Series {
	out := epdapi.Series{
		IntervalS: float64(s.Interval()) / float64(time.Second), Values: make([]live.Number, s.Len()),
	}
	for i := range out.Values {
		out.Values[i] = s.At(i)
	}
	return out
}

// addArrayID adds the task of an array that a job is, or the tasks that wait together, as Slurm lists it.
func (r *reader) addArrayID(j *epdapi.Job) {
	live := r.options.Tracker.Get(slurm.JobID(j.ID)) //nolint:gosec // ids of Slurm's have 32 bits
	if live != nil && live.Submitted == j.Submitted.Unix() {
		j.ArrayID = cmp.Or(live.ArrayID(), j.ArrayID)
	}
}
