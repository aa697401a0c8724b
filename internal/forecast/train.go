package forecast

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/pause"
	"github.com/epplan/epplan/internal/predict"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
)

// trainedVersion is a version of what predicts: what it was made of. It is made anew from
// the records at each start, so that only this is stored.
type trainedVersion struct {
	Version      int64     `json:"-"`
	OwnJobs      int       `json:"own_jobs"`
	ImportedJobs int       `json:"imported_jobs"`
	Scripts      int       `json:"scripts"` // features that probes are fitted to
	Codes        int       `json:"codes"`
	TookS        float64   `json:"took_s"`
	At           time.Time `json:"-"`

	Scores []epdapi.ForecastScore `json:"scores"`
}

// Workload is under which name versions of what predicts are stored, among those of
// workloads' models.
const Workload = "forecast"

func (f *Forecaster) key() record.WorkloadKey {
	return record.WorkloadKey{Cluster: f.options.Cluster, Workload: Workload}
}

const (
	// trainAgain is how long after a training that failed the next one is tried.
	trainAgain = time.Minute
	// trainRest is how many times as long as a training took nothing is trained
	// after it: an import hands over its jobs in many parts, each of which makes
	// one due.
	trainRest = 9
)

// trainLoop trains whenever that is due, for a tenth of the time at most.
func (f *Forecaster) trainLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.due:
		}
		if !f.options.Settings().Enabled {
			continue
		}
		began := time.Now()
		err := f.Train(ctx)
		rest := trainRest * time.Since(began)
		if err != nil && ctx.Err() == nil {
			f.options.Log.Warn("predictions weren't trained anew; tried again later", "error", err)
			f.TrainSoon()
			rest = max(rest, trainAgain)
		}
		if pause.For(ctx, rest) != nil {
			return
		}
	}
}

// Train learns from all that the records have, and predicts by that from then on.
// What was learnt before predicts meanwhile. It waits for a training that is under way:
// what it knows is older.
func (f *Forecaster) Train(ctx context.Context) error {
	f.training <- struct{}{}
	defer func() { <-f.training }()
	return f.withRecover(func() error { return f.train(ctx) })
}

func (f *Forecaster) train(ctx context.Context) error {
	began := time.Now()
	defer debug.FreeOSMemory() // what was read and fitted to is garbage by now
	defer f.options.LowerGCPercent()()
	version := &trainedVersion{At: f.options.Clock()}
	var ended []record.EndedJob
	jobs, err := f.live.Train(ctx, func(ctx context.Context) (all []predict.Past, err error) {
		ended, all, err = f.readPast(ctx, version)
		return all, err
	})
	if err != nil {
		return err
	}
	f.tally.reset(ended)
	if err := f.fitProbes(ctx, ended, version); err != nil {
		return err
	}
	version.TookS = time.Since(began).Seconds()
	version.Scores = f.tally.scores()
	if jobs == 0 {
		return nil
	}
	return f.keepTraining(ctx, version, jobs)
}

// readPast reads the latest jobs of the records and of imported logs; of those that
// teach nothing there may be three times as many among them.
func (f *Forecaster) readPast(
	ctx context.Context, version *trainedVersion,
) ([]record.EndedJob, []predict.Past, error) {
	most := f.options.Settings().Jobs
	ended, err := f.options.Records.EndedJobs(ctx, f.options.Cluster, most)
	if err != nil {
		return nil, nil, err
	}
	ended = slices.DeleteFunc(ended, func(e record.EndedJob) bool {
		return e.GPUs <= 0 || wasStopped(e.State)
	})
	all := make([]predict.Past, 0, len(ended))
	known := make(map[string]bool, len(ended))
	for i := range ended {
		all = append(all, pastOf(&ended[i]))
		known[all[i].Job.ID] = true
	}
	version.OwnJobs = len(all)
	var imported []predict.Past
	filter := store.HistoryFilter{Cluster: f.options.Cluster, Latest: 4 * most}
	err = f.options.Records.VisitHistory(ctx, &filter, func(r record.HistoryJob) error {
		if p, ok := pastFrom(&r); ok && !known[p.Job.ID] {
			imported = append(imported, p)
		}
		if len(imported) >= 2*most { // in the order of submission
			imported = append(imported[:0], imported[len(imported)-most:]...)
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, nil, err
	}
	all = newest(append(all, imported...), most)
	version.ImportedJobs = max(0, len(all)-version.OwnJobs)
	return ended, all, nil
}

// keepTraining stores what a version was made of.
func (f *Forecaster) keepTraining(ctx context.Context, t *trainedVersion, jobs int) error {
	text, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("store a training: %w", err)
	}
	t.Version, err = f.options.Records.PutModel(ctx, &record.Model{
		WorkloadKey: f.key(), Form: record.ForecastForm, Coefficients: text, Samples: jobs,
		Created: t.At, InUse: true,
		Note: t.note(),
	})
	if err != nil {
		return fmt.Errorf("store a training: %w", err)
	}
	f.latest.Store(t)
	f.counters.trainings.Add(1)
	f.options.Log.Info("predictions trained",
		"version", t.Version, "own_jobs", t.OwnJobs, "imported_jobs", t.ImportedJobs, "took_s", t.TookS)
	return nil
}

// note returns a version for people.
func (t *trainedVersion) note() string {
	text := fmt.Sprintf("%d own and %d imported jobs", t.OwnJobs, t.ImportedJobs)
	for i := range t.Scores {
		if s := &t.Scores[i]; s.Target == predict.Time.String() && s.Rung == "" && s.Jobs > 0 {
			return fmt.Sprintf("%s; %.0f%% of %d times inside", text, 100*s.Coverage, s.Jobs)
		}
	}
	return text
}

// ModelStatus returns how predictions fare, among the models; false before the first training.
func (f *Forecaster) ModelStatus() (epdapi.ModelStatus, bool) {
	t := f.latest.Load()
	if t == nil {
		return epdapi.ModelStatus{}, false
	}
	return epdapi.ModelStatus{
		WorkloadKey: f.key(), Version: t.Version, Samples: t.OwnJobs + t.ImportedJobs, Note: t.note(),
	}, true
}
