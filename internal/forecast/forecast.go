package forecast

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/predict"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
)

// predictWait is how long a submission waits for a prediction: what is learnt
// meanwhile takes some microseconds, another model is put in place in a few
// milliseconds. Without one nothing is predicted.
const predictWait = 2 * time.Millisecond

// Records are what forecasts need of the store.
type Records interface {
	// EndedJob is one job that ended, with what was predicted of it, and how many of
	// its runs are known.
	EndedJob(ctx context.Context, cluster string, id int64, submitted time.Time) (record.Ended, error)
	// Ended are those of the latest jobs of a cluster that ended, the oldest first.
	Ended(ctx context.Context, cluster string, latest int) ([]record.Ended, error)
	// VisitHistory visits jobs of imported logs in the order of their submissions,
	// until visit returns an error, which comes back.
	VisitHistory(ctx context.Context, filter *store.HistoryFilter, visit func(record.Past) error) error
	// PutFeatures keeps what a script and its code look like; those of the code stay
	// where the new ones have none.
	PutFeatures(ctx context.Context, f *record.Features) error
	// Features are those of the scripts that were submitted last, the latest first.
	Features(ctx context.Context, cluster string, most int) ([]record.Features, error)
	// PutModel stores what a training learnt from, and returns the number of that
	// version.
	PutModel(ctx context.Context, m *record.Model) (int64, error)
}

// Options are what a forecaster works with. Only UserName, Pending and
// LittleGarbage may be nil.
type Options struct {
	Records Records
	Cluster string
	// Settings are those in force. They are never changed: others take their place.
	Settings func() *config.Predict
	// GPUPower is the least and the most that one of the GPUs uses that a job may get:
	// 0 and infinite where that isn't known.
	GPUPower func() (idle, busy dvfsmodel.Watt)
	// UserName is a user's name, "" if there is none; it may take its time. Nil: names
	// are known from jobs alone.
	UserName func(uid uint32) string
	Clock    func() time.Time
	Log      *slog.Logger
	// Pending is told that something waits to be learnt from; what it returns is called
	// when that is done.
	Pending func() (done func())
	// LittleGarbage keeps garbage small until what it returns is called: a training
	// reads much that is garbage soon.
	LittleGarbage func() (end func())
}

// Forecaster predicts what jobs take when they are submitted. It learns in the
// background from jobs that ended. Its methods may be called by several goroutines.
type Forecaster struct {
	options  Options
	live     *predict.Live
	users    users
	codes    codes
	probes   atomic.Pointer[probes]
	tally    tally
	texts    texts
	askable  atomic.Pointer[servers]
	work     chan work
	asks     chan work     // for servers, which may take minutes
	due      chan struct{} // somebody thinks that a training is due
	latest   atomic.Pointer[training]
	counters counters
}

// counters count since the start.
type counters struct {
	missed             atomic.Int64 // submissions without a prediction in time
	trainings          atomic.Int64
	aligned, askErrors atomic.Int64 // codes that were rewritten; servers that failed
}

// work is something to learn from: an ended job, or a script.
type work struct {
	job       int64 // 0: none
	submitted time.Time
	script    *scriptWork
	uid       uint32 // a user whose name is wanted; 0: none
	done      func()
}

const (
	workQueue = 1024
	askQueue  = 64
)

// New makes a forecaster that knows nothing yet: it learns from the records
// as soon as it runs.
func New(options Options) *Forecaster {
	nothing := func() func() { return func() {} }
	if options.Pending == nil {
		options.Pending = nothing
	}
	if options.LittleGarbage == nil {
		options.LittleGarbage = nothing
	}
	f := &Forecaster{
		options: options, live: predict.NewLive(nil),
		work: make(chan work, workQueue), asks: make(chan work, askQueue), due: make(chan struct{}, 1),
	}
	f.TrainSoon()
	return f
}

// Job is what is known of a job before it starts, as far as forecasts go by it.
type Job struct {
	UID uint32
	// Where the user names no partition or account, it is those of the user's last job.
	Name, Partition, Account string
	GPUs, Nodes              int
	Limit                    time.Duration // in the GPUs' time; 0: none, or not known
	Source                   string        // the user's script, or name of jobs, as records name it
	Script                   string        // the script's text; "": not known
}

// predicted is a job for predictions.
func (f *Forecaster) predicted(j *Job) *predict.Job {
	u := f.users.get(j.UID)
	if u.name == "" && j.UID > 0 && f.options.UserName != nil {
		f.later(work{uid: j.UID})
	}
	return &predict.Job{
		Submit: float64(f.options.Clock().Unix()), Owner: ownerOf(u.name, j.UID),
		Labels: []string{cut(j.Name), cut(cmp.Or(j.Partition, u.partition)), cut(cmp.Or(j.Account, u.account))},
		Sizes:  []float64{float64(j.GPUs), float64(max(1, j.Nodes))}, Requested: requested(j.Limit),
	}
}

// maxLabel is how many bytes of a name count.
const maxLabel = 256

func cut(text string) string { return text[:min(len(text), maxLabel)] }

// ownerOf names an owner: by number where the name isn't known.
func ownerOf(user string, uid uint32) string {
	if user == "" {
		return "#" + strconv.FormatUint(uint64(uid), 10)
	}
	return user
}

// requested is a limit in seconds; NaN without one.
func requested(limit time.Duration) float64 {
	if limit == 0 {
		return math.NaN()
	}
	return limit.Seconds()
}

// scriptOf is a source as predictions know it; 0 for what isn't one.
func scriptOf(source string) uint64 {
	raw, err := hex.DecodeString(source)
	if err != nil || len(raw) < 8 {
		return 0
	}
	return binary.LittleEndian.Uint64(raw)
}

// Predict is what a job is expected to take; nil where predictions are off, it has no
// GPUs, or there is no time.
func (f *Forecaster) Predict(j *Job) *epdapi.Forecast {
	if !f.options.Settings().Enabled || j.GPUs <= 0 {
		return nil
	}
	found, ok := f.live.Predict(predictWait, f.predicted(j), scriptOf(j.Source))
	if !ok {
		f.counters.missed.Add(1)
		return nil
	}
	out := &epdapi.Forecast{}
	if found[predict.Time].Rung != predict.Repeat {
		f.byCode(j, &found, out)
	}
	withoutEnergy(&found, float64(j.GPUs))
	idle, busy := f.options.GPUPower()
	clamp(&found, j, idle, busy)
	out.Time, out.Power = foreseen(&found[predict.Time], 1), foreseen(&found[predict.Power], 1)
	out.Energy = foreseen(&found[predict.Energy], dvfsmodel.JoulesPerKWh)
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

// Note puts a forecast into the record of a submission: how it turned out is
// counted when the job ended.
func Note(f *epdapi.Forecast, into *record.Decision) {
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

// users are those whose jobs were seen, by number.
type users struct {
	mu sync.RWMutex
	of map[uint32]user
}

// user has the account and the partition of the last job.
type user struct{ name, account, partition string }

const maxUsers = 100_000

func (u *users) get(uid uint32) user {
	u.mu.RLock()
	defer u.mu.RUnlock()
	return u.of[uid]
}

// SeeUser remembers whose a job is, and where it runs.
func (f *Forecaster) SeeUser(uid uint32, name, account, partition string) {
	u, now := &f.users, user{name, account, partition}
	if name == "" || u.get(uid) == now {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.of == nil || len(u.of) >= maxUsers {
		u.of = make(map[uint32]user)
	}
	u.of[uid] = now
}

// Run learns until the context ends.
func (f *Forecaster) Run(ctx context.Context) {
	var loops sync.WaitGroup
	loops.Go(func() { f.learnLoop(ctx, f.work) })
	loops.Go(func() { f.learnLoop(ctx, f.asks) })
	loops.Go(func() { f.trainLoop(ctx) })
	loops.Wait()
}

// TrainSoon has [Forecaster.Run] train, as the records changed.
func (f *Forecaster) TrainSoon() {
	select {
	case f.due <- struct{}{}:
	default:
	}
}

// learnLoop learns from what ends and is submitted.
func (f *Forecaster) learnLoop(ctx context.Context, from <-chan work) {
	for {
		select {
		case w := <-from:
			_ = f.guarded(func() error { f.learnFrom(ctx, &w); return nil }) // it is in the log
			w.done()
		case <-ctx.Done():
			for {
				select {
				case w := <-from:
					w.done()
				default:
					return
				}
			}
		}
	}
}

// later has something learnt from, unless there is too much: the next training has
// it all. False: it isn't.
func (f *Forecaster) later(w work) bool {
	if !f.options.Settings().Enabled {
		return false
	}
	to := f.work
	if w.uid > 0 || w.script != nil && w.script.text != "" {
		to = f.asks
	}
	w.done = f.options.Pending()
	select {
	case to <- w:
		return true
	default:
		w.done()
		return false
	}
}

// JobEnded has a job learnt from that was submitted at a time, when all its runs are
// in the records.
func (f *Forecaster) JobEnded(id int64, submitted time.Time) {
	f.later(work{job: id, submitted: submitted})
}

// learnFrom learns from one job or script.
func (f *Forecaster) learnFrom(ctx context.Context, w *work) {
	switch {
	case w.script != nil:
		f.keepFeatures(ctx, w.script)
		return
	case w.uid > 0:
		f.SeeUser(w.uid, cut(f.options.UserName(w.uid)), "", "")
		return
	}
	e, err := f.options.Records.EndedJob(ctx, f.options.Cluster, w.job, w.submitted)
	if err != nil || e.Runs < e.Nodes || e.GPUs <= 0 { // other nodes' runs are still to come
		return
	}
	f.tally.add(&e)
	past := pastOf(&e)
	f.live.End(&past)
	if f.live.Due() {
		f.TrainSoon()
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
		Script:  scriptOf(e.ScriptHash),
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
