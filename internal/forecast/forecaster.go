// Package forecast predicts what jobs will take, for those who submit them and for
// what plans the queue: time, energy and power, by jobs that ended, by the script and,
// if its user tells of it, by the code that it runs. No clock follows from it.
//
// A [Forecaster] learns in the background: from each job that ends, and from all
// records anew when it trains. What a submission asks waits for no training and no
// server: what is known by then answers.
package forecast

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/predict"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
)

// Records are what forecasts need of the store.
type Records interface {
	// EndedJob is one job that ended, with what was predicted of it, and how many of
	// its runs are known.
	EndedJob(ctx context.Context, cluster string, id int64, submitted time.Time) (record.EndedJob, error)
	// EndedJobs are those of the latest jobs of a cluster that ended, the oldest first.
	EndedJobs(ctx context.Context, cluster string, latest int) ([]record.EndedJob, error)
	// VisitHistory visits jobs of imported logs in the order of their submissions,
	// until visit returns an error, which comes back.
	VisitHistory(ctx context.Context, filter *store.HistoryFilter, visit func(record.HistoryJob) error) error
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
// LowerGCPercent may be nil.
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
	// LowerGCPercent keeps garbage small until what it returns is called: a training
	// reads much that is garbage soon.
	LowerGCPercent func() (end func())
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
	training chan struct{} // one place: trainings follow each other
	latest   atomic.Pointer[trainedVersion]
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
	if options.LowerGCPercent == nil {
		options.LowerGCPercent = nothing
	}
	f := &Forecaster{
		options: options, live: predict.NewLive(nil),
		work: make(chan work, workQueue), asks: make(chan work, askQueue), due: make(chan struct{}, 1),
		training: make(chan struct{}, 1),
	}
	f.TrainSoon()
	return f
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
			_ = f.withRecover(func() error { f.learnFrom(ctx, &w); return nil }) // it is in the log
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

// enqueue has something learnt from, unless there is too much: the next training has
// it all. False: it isn't.
func (f *Forecaster) enqueue(w work) bool {
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
	f.enqueue(work{job: id, submitted: submitted})
}

// withRecover has a panic be an error: what is learnt in the background from what
// users submit must not end epd, which jobs' prologs wait for.
func (f *Forecaster) withRecover(do func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
			f.options.Log.Error("predictions: a panic", "error", err, "stack", string(debug.Stack()))
		}
	}()
	return do()
}
