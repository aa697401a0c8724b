package control

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/predict"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// forecastBound is how long a submission waits for a prediction: what is learnt
// meanwhile takes some microseconds, another model is put in place in a few
// milliseconds. Without one nothing is predicted.
const forecastBound = 2 * time.Millisecond

// forecasts predict what jobs take when they are submitted. They learn in the
// background from jobs that ended.
type forecasts struct {
	live   *predict.Live
	people people
	codes  codes
	probes atomic.Pointer[probes]
	tally  tally
	texts  texts
	work   chan forecastWork
	asks   chan forecastWork // for servers, which may take minutes
	due    chan struct{}     // somebody thinks that a training is due
	missed atomic.Int64      // submissions without a prediction in time
	latest atomic.Pointer[training]
}

// forecastWork is something to learn from: an ended job, or a script.
type forecastWork struct {
	job       int64 // 0: none
	submitted time.Time
	script    *scriptWork
	uid       uint32 // a user whose name is wanted; 0: none
}

const (
	forecastQueue = 1024
	askQueue      = 64
)

func (f *forecasts) init() {
	f.live = predict.NewLive(nil)
	f.work, f.asks, f.due = make(chan forecastWork, forecastQueue), make(chan forecastWork, askQueue), make(chan struct{}, 1)
}

// asked is what is known of a job before it starts, as far as predictions go by it.
type asked struct {
	uid                      uint32
	name, partition, account string
	gpus, nodes              int
	limit                    live.Limit
	source                   source
	script                   string // its text, where it is known
}

// predictJob is a job for predictions. Where the user names no partition or account, it
// is those of the user's last job.
func (c *Controller) predictJob(a *asked) *predict.Job {
	p := c.forecasts.people.get(a.uid)
	if p.user == "" && a.uid > 0 && c.options.UserName != nil {
		c.later(forecastWork{uid: a.uid})
	}
	if a.partition == "" {
		a.partition = p.partition
	}
	if a.account == "" {
		a.account = p.account
	}
	return &predict.Job{
		Submit: float64(c.options.Clock().Unix()), Owner: ownerOf(p.user, a.uid), Labels: []string{cut(a.name), cut(a.partition), cut(a.account)},
		Sizes: []float64{float64(a.gpus), float64(max(1, a.nodes))}, Requested: requested(a.limit),
	}
}

// ownerOf names an owner: by number where the name isn't known.
func ownerOf(user string, uid uint32) string {
	if user == "" {
		return "#" + strconv.FormatUint(uint64(uid), 10)
	}
	return user
}

// requested is a limit in seconds; NaN without one.
func requested(limit live.Limit) float64 {
	if d, ok := limit.Duration(); ok {
		return d.Seconds()
	}
	return math.NaN()
}

// script is a source as predictions know it.
func (s source) script() uint64 { return binary.LittleEndian.Uint64(s[:]) }

// forecast predicts a job; nil where predictions are off, it has no GPUs, or
// there is no time.
func (c *Controller) forecast(a *asked) *epdapi.Forecast {
	if !c.settings.Load().Predict.Enabled || a.gpus <= 0 {
		return nil
	}
	f := &c.forecasts
	job := c.predictJob(a)
	found, ok := f.live.Predict(forecastBound, job, a.source.script())
	if !ok {
		f.missed.Add(1)
		return nil
	}
	out := &epdapi.Forecast{}
	if found[predict.Time].Rung != predict.Repeat {
		c.byCode(a, &found, out)
	}
	withoutEnergy(&found, float64(a.gpus))
	c.possible(&found, a)
	out.Time, out.Energy, out.Power = foreseen(&found[predict.Time], 1), foreseen(&found[predict.Energy], dvfsmodel.JoulesPerKWh), foreseen(&found[predict.Power], 1)
	out.Footprint = c.settings.Load().footprint(c.options.Clock(), out)
	return out
}

// footprint is what a forecast comes to if its job began now, by factors over time;
// nil where there are only constant ones.
func (s *Settings) footprint(now time.Time, f *epdapi.Forecast) *epdapi.ForecastFootprint {
	if s.series == nil {
		return nil
	}
	out := &epdapi.ForecastFootprint{Currency: s.Factors.Currency}
	for i, seconds := range []float64{f.Time.Value, f.Time.Low, f.Time.High} {
		const longest = 1e8 // s: three years
		factors := s.series.Over(now, time.Duration(min(seconds, longest)*float64(time.Second)), &s.Factors)
		all, low, high := factors.Of(dvfsmodel.Joule(f.Energy.Value)), factors.Of(dvfsmodel.Joule(f.Energy.Low)), factors.Of(dvfsmodel.Joule(f.Energy.High))
		for to, values := range map[*epdapi.Foreseen][3]float64{
			&out.Carbon: {all.Carbon, low.Carbon, high.Carbon}, &out.Water: {all.Water, low.Water, high.Water}, &out.Cost: {all.Cost, low.Cost, high.Cost},
		} {
			if i == 0 {
				*to = epdapi.Foreseen{Value: values[0], Low: values[0], High: values[0], Rung: f.Energy.Rung}
			}
			to.Low, to.High = min(to.Low, values[1], values[2]), max(to.High, values[1], values[2])
		}
	}
	return out
}

// withoutEnergy makes an energy that nothing is known of from time and power.
func withoutEnergy(f *predict.Forecast, gpus float64) {
	e, t, p := &f[predict.Energy], &f[predict.Time], &f[predict.Power]
	if e.Rung == predict.Prior {
		*e = predict.Prediction{Value: t.Value * p.Value * gpus / dvfsmodel.JoulesPerKWh, Low: t.Low * p.Low * gpus / dvfsmodel.JoulesPerKWh, High: t.High * p.High * gpus / dvfsmodel.JoulesPerKWh, Rung: predict.Prior}
	}
}

func foreseen(p *predict.Prediction, unit float64) epdapi.Foreseen {
	return epdapi.Foreseen{Value: p.Value * unit, Low: p.Low * unit, High: p.High * unit, Rung: string(p.Rung)}
}

// askedOf is what a submission says.
func (c *Controller) askedOf(s *slurm.Submission, from source) *asked {
	gpus, _ := gpusOf(s)
	nodes := 1
	if s.MinNodes < slurm.NoVal {
		nodes = int(s.MinNodes)
	}
	return &asked{
		uid: s.UID, name: string(s.Name), partition: string(s.Partition), account: string(s.Account), gpus: gpus, nodes: nodes,
		limit: c.limitOf(s.Limit()), source: from, script: string(s.Script),
	}
}

// Forecast is what a queued job is expected to take; nil where that isn't known.
func (c *Controller) Forecast(j *slurm.Job) *epdapi.Forecast {
	k := c.jobs.get(j.ID)
	if k == nil || k.gpus == 0 || k.gpus > maxGPUs || k.source == (source{}) {
		return nil
	}
	return c.forecast(&asked{
		uid: k.uid, name: k.name.Value(), partition: k.partition.Value(), account: k.account.Value(), gpus: int(k.gpus),
		nodes: int(k.nodes), limit: k.limit, source: k.source,
	})
}

// noteForecast puts predictions into the record of a submission.
func noteForecast(f *epdapi.Forecast, into *record.Decision) {
	if f == nil {
		return
	}
	for p, to := range map[*epdapi.Foreseen]*record.Interval{&f.Time: &into.TimeS, &f.Energy: &into.EnergyJ, &f.Power: &into.PowerW} {
		*to = record.Interval{Value: record.Known(p.Value), Low: record.Known(p.Low), High: record.Known(p.High)}
	}
	into.Rung = rungText(f)
}

// rungText is what a forecast rests on, that of time, energy and power apart where
// they differ.
func rungText(f *epdapi.Forecast) string {
	if f.Energy.Rung == f.Time.Rung && f.Power.Rung == f.Time.Rung {
		return f.Time.Rung
	}
	return strings.Join([]string{f.Time.Rung, f.Energy.Rung, f.Power.Rung}, "/")
}

// rungsOf is the reverse of rungText.
func rungsOf(text string) (rungs [predict.Power + 1]string) {
	parts := strings.Split(text, "/")
	for t := range rungs {
		rungs[t] = parts[min(t, len(parts)-1)]
	}
	return rungs
}

// people are users by number, as Slurm's jobs name them.
type people struct {
	mu sync.RWMutex
	of map[uint32]person
}

type person struct{ user, account, partition string }

const maxPeople = 100_000

func (p *people) get(uid uint32) person {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.of[uid]
}

// note remembers whose a job is.
func (p *people) note(k *knownJob) {
	now := person{k.user.Value(), k.account.Value(), k.partition.Value()}
	if now.user == "" || p.get(k.uid) == now {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil || len(p.of) >= maxPeople {
		p.of = make(map[uint32]person)
	}
	p.of[k.uid] = now
}

// startForecasts has the loops of predictions run until the context ends.
func (c *Controller) startForecasts(ctx context.Context) {
	c.forecasts.wantTraining()
	c.running.Go(func() { c.forecastLoop(ctx, c.forecasts.work) })
	c.running.Go(func() { c.forecastLoop(ctx, c.forecasts.asks) })
	c.running.Go(func() { c.trainLoop(ctx) })
}

func (f *forecasts) wantTraining() {
	select {
	case f.due <- struct{}{}:
	default:
	}
}

// forecastLoop learns from what ends and is submitted.
func (c *Controller) forecastLoop(ctx context.Context, from <-chan forecastWork) {
	for {
		select {
		case w := <-from:
			_ = c.guarded(func() error { c.learnFrom(ctx, &w); return nil }) // it is in the log
			c.pending.done()
		case <-ctx.Done():
			for {
				select {
				case <-from:
					c.pending.done()
				default:
					return
				}
			}
		}
	}
}

// later has something learnt from, unless there is too much: the next training has
// it all. False: it isn't.
func (c *Controller) later(w forecastWork) bool {
	if !c.settings.Load().Predict.Enabled {
		return false
	}
	to := c.forecasts.work
	if w.uid > 0 || w.script != nil && w.script.text != "" {
		to = c.forecasts.asks
	}
	c.pending.add()
	select {
	case to <- w:
		return true
	default:
		c.pending.done()
		return false
	}
}

// learnFrom learns from one job or script.
func (c *Controller) learnFrom(ctx context.Context, w *forecastWork) {
	f := &c.forecasts
	switch {
	case w.script != nil:
		c.keepFeatures(ctx, w.script)
		return
	case w.uid > 0:
		if name := c.options.UserName(w.uid); name != "" {
			f.people.note(&knownJob{uid: w.uid, user: kept(name), account: kept(""), partition: kept("")})
		}
		return
	}
	e, err := c.options.Store.EndedJob(ctx, c.options.Cluster, w.job, w.submitted)
	if err != nil || e.Runs < e.Nodes || e.GPUs <= 0 { // other nodes' runs are still to come
		return
	}
	f.tally.add(&e)
	past := pastOf(&e)
	f.live.End(&past)
	if f.live.Due() {
		f.wantTraining()
	}
}

// pastOf is a job of the records as predictions learn from it.
func pastOf(e *record.Ended) predict.Past {
	p := predict.Past{
		Job: predict.Job{
			ID: strconv.FormatInt(e.ID, 10) + "@" + strconv.FormatInt(e.Submitted.Unix(), 10), Submit: float64(e.Submitted.Unix()), Owner: e.User,
			Labels: []string{string(e.Name), e.Partition, e.Account}, Sizes: []float64{float64(e.GPUs), float64(max(1, e.Nodes))},
			Requested: requested(e.Limit),
		},
		Outcome: predict.Outcome{End: float64(e.Ended.Unix()), Completed: e.Completed, Value: truthOf(e)},
	}
	if s, ok := parseSource(e.ScriptHash); ok {
		p.Script = s.script()
	}
	return p
}

// truthOf is what an ended job took, by target; NaN where that isn't known.
func truthOf(e *record.Ended) [predict.Power + 1]float64 {
	nan := math.NaN()
	took, energy := e.TimeS.Or(nan), e.EnergyJ.Or(nan)
	return [...]float64{predict.Time: took, predict.Energy: energy / dvfsmodel.JoulesPerKWh, predict.Power: energy / took / float64(max(1, e.GPUs))}
}

// pastFrom is a job of an imported log; false for one that teaches nothing. What
// Slurm measured may be whole nodes: only times are learnt from.
func pastFrom(r *record.Past) (predict.Past, bool) {
	gpus, counted := r.GPUs.Get()
	took, known := r.RunTime().Get()
	if !known || took <= 0 || counted && gpus <= 0 || r.User == "" {
		return predict.Past{}, false
	}
	return predict.Past{
		Job: predict.Job{
			ID: r.JobID + "@" + strconv.FormatInt(r.Submitted.Unix(), 10), Submit: float64(r.Submitted.Unix()), Owner: r.User,
			Labels: []string{cut(string(r.Name)), r.Partition, r.Account}, Sizes: []float64{r.GPUs.Or(math.NaN()), max(1, r.Nodes.Or(1))},
			Requested: requested(r.Limit),
		},
		Outcome: predict.Outcome{
			End: float64(r.Ended.Unix()), Completed: strings.HasPrefix(r.State, record.Completed),
			Value: [...]float64{predict.Time: took, predict.Energy: math.NaN(), predict.Power: math.NaN()},
		},
	}, true
}

// newest are at most so many jobs, those submitted last.
func newest(all []predict.Past, most int) []predict.Past {
	slices.SortStableFunc(all, func(a, b predict.Past) int { return int(a.Job.Submit - b.Job.Submit) })
	return all[max(0, len(all)-most):]
}
