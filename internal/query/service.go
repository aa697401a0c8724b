// Package query answers what pages and commands ask of a controller.
//
// A [Service] has one method for each question. Each is told who asks, a [Caller], and
// sees to it by itself that a caller gets what the caller may see and nothing else:
// users what concerns their own jobs, operators everything, those who control epd may
// also change something. So pages may ask it directly, and the JSON interface adds
// nothing but JSON. It owns nothing that others go by: what it keeps is what was asked
// for a moment ago, so that many may ask.
package query

import (
	"context"
	"log/slog"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/colocate"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/forecast"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/learn"
	"github.com/epplan/epplan/internal/liveplan"
	"github.com/epplan/epplan/internal/nodes"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// JobRecords are what questions about jobs need of the store.
type JobRecords interface {
	// Jobs are submissions, the latest first, from before a page's Next on.
	Jobs(ctx context.Context, filter *store.JobFilter, before int64, limit int) (store.JobPage, error)
	// JobRows are jobs with what their runs came to, the latest first.
	JobRows(ctx context.Context, filter *store.JobFilter, before int64, limit int) (store.ListedPage, error)
	// LastJobs are the last jobs of workloads.
	LastJobs(ctx context.Context, cluster string, workloads []string) (map[string]record.Job, error)
	// LastDecisions are decisions in a mode (empty: any), the latest first.
	LastDecisions(
		ctx context.Context, cluster, mode string, before int64, limit int,
	) (store.DecisionPage, error)
	// LastDecisionsOf are those on a user's latest jobs.
	LastDecisionsOf(ctx context.Context, cluster, user, mode string, most int) ([]record.JobDecision, error)
	// DecisionByToken is the record of the submission that a token was given for;
	// [store.ErrNotFound]: there is none.
	DecisionByToken(ctx context.Context, cluster, token string) (record.Decision, error)
	// DecisionsOfJob are all decisions under a job id.
	DecisionsOfJob(ctx context.Context, cluster string, jobID int64) ([]record.Decision, error)
	// OutcomesOfJob are all outcomes under a job id.
	OutcomesOfJob(ctx context.Context, cluster string, jobID int64) ([]record.Outcome, error)
	// Readings are what was measured of the runs under a job id.
	Readings(ctx context.Context, cluster string, jobID int64) (map[record.RunKey]record.Readings, error)
}

// SumRecords are what questions about all runs together need of the store.
type SumRecords interface {
	// RunDays are sums over runs by day, arm and state, from a day on.
	RunDays(ctx context.Context, cluster string, from time.Time) ([]record.RunDay, error)
	// Strata are sums over jobs that ended since a time and before another one, whose arms may be compared.
	Strata(ctx context.Context, cluster string, since, until time.Time) ([]record.Stratum, error)
	// Usage sums a user's runs ("": all) by one of [record.Groupings]; "" makes one group.
	Usage(ctx context.Context, cluster string, since, until time.Time, by, user string) ([]record.Usage, error)
	// PrunedUsage sums pruned runs.
	PrunedUsage(ctx context.Context, cluster string, since, until time.Time) (record.Usage, error)
	// Oldest is the approximate time of the oldest record; zero: there is none.
	Oldest(ctx context.Context) (time.Time, error)
	// ProfileCounts are how many profiles there are of workloads, those that ran last
	// first; of one workload, if it is named.
	ProfileCounts(ctx context.Context, cluster, workload string, most int) ([]record.ProfileCount, error)
}

// RunRecords are what it takes to look after single records.
type RunRecords interface {
	// RecordedRuns are runs as they are recorded, or outcomes that contradict them.
	RecordedRuns(
		ctx context.Context, f *store.RunFilter, conflicts bool, after int64, most int,
	) (store.RecordedRunPage, error)
	// Forget takes runs and conflicting outcomes out of the records.
	Forget(ctx context.Context, outcomes, conflicts []int64) (store.ForgetResult, error)
	// Remember puts runs back that were taken out.
	Remember(ctx context.Context, runs []record.RecordedRun) (store.ForgetResult, error)
}

// HistoryRecords are jobs of imported logs.
type HistoryRecords interface {
	// AddHistory stores jobs of a log, all of them or none.
	AddHistory(ctx context.Context, jobs []record.HistoryJob) (added int, err error)
	// VisitHistory goes through jobs of logs, by submission.
	VisitHistory(ctx context.Context, filter *store.HistoryFilter, visit func(record.HistoryJob) error) error
}

// EndedRecords are what questions about the last runs need of the store.
type EndedRecords interface {
	// RunEnergies are the runs that ended since a time, whose GPU energy is known.
	RunEnergies(ctx context.Context, cluster string, since time.Time) ([]record.RunEnergy, error)
}

// Records are all that questions need of the store.
type Records struct {
	Jobs    JobRecords
	Sums    SumRecords
	Runs    RunRecords
	History HistoryRecords
	Ended   EndedRecords
}

// Settings are those in force at one moment, as far as answers go by them.
type Settings struct {
	Version  string
	Goal     config.Goal
	Live     *config.Live
	Factors  *config.Factors
	Profiles *config.Profiles
	Sharing  colocate.Rules
	// HostW is the power of the rest of a node for each of its GPUs.
	HostW func(gpuModel string) dvfsmodel.Watt
	// Footprint is what a forecast comes to if its job began now; nil where factors
	// don't change over time.
	Footprint func(now time.Time, f *epdapi.Forecast) *epdapi.ForecastFootprint
	// Choose is what would be decided for a job, and the default clocks there.
	Choose func(*Choice) (decision live.Decision, base dvfsmodel.Setting)
}

// Choice is a job for which clocks are to be chosen if it ran now.
type Choice struct {
	Job      *jobs.Job
	GPUModel string
	Shared   bool // it has parts of GPUs
	Model    learn.View
	Wishes   *slurm.Wishes
	Now      time.Time
}

// Clocks are those of a GPU model, as agents said.
type Clocks struct {
	Base  dvfsmodel.Setting   // the default ones
	Pairs []dvfsmodel.Setting // that the device has, by their memory clocks and then by the core's
}

// Options are what a service works with. Only UserName may be nil.
type Options struct {
	Records Records
	Cluster string
	// Settings are those in force.
	Settings func() *Settings
	// Status is how the controller fares, with all that may be known of it.
	Status    func() epdapi.ControllerStatus
	Tracker   *jobs.Tracker
	Learner   *learn.Learner
	Forecasts *forecast.Forecaster
	Reports   *nodes.Reports
	Budgets   func() *epdapi.BudgetList // power budgets; nil: there are none
	Plan      *liveplan.InForce
	// GPUNames are the GPU models of which anything is known, and which GPUs are which, by profiles.
	GPUNames func(*config.Profiles) *GPUNames
	// Clocks are those of a GPU model; false: no agent named them since the start.
	Clocks func(gpuModel string) (Clocks, bool)
	// Workload is the key under which runs of a workload are known that start in a partition on a GPU
	// model: by the power profile that they get there.
	Workload func(workload, partition, gpuModel string) string
	// Scripted reports whether job_submit sends batch scripts.
	Scripted func() bool
	// Profile is what a workload does by itself on a GPU model.
	Profile func(ctx context.Context, key record.WorkloadKey) (*colocate.UseProfile, error)
	// Reload reads the configuration again.
	Reload func() (*epdapi.ReloadAnswer, error)
	// UserName is a user's name, "" if there is none; it may take its time.
	UserName func(uid uint32) string
	Clock    func() time.Time
	Log      *slog.Logger
}

// Service answers questions. Its methods may be called by several goroutines.
type Service struct {
	options  *Options
	reader   reader
	lastJobs lastJobs
	savings  cachedSavings
}

// New makes a service.
func New(options *Options) *Service {
	own := *options
	return &Service{
		options: &own, reader: reader{&own}, lastJobs: lastJobs{options: &own},
	}
}

// Bounds of answers and of what is asked.
const (
	pageSize = 100
	maxPage  = 1000
	maxModel = 200 // bytes of a GPU model's name
)

// isName reports whether a text is printable and at most so long.
func isName(text string, most int) bool {
	return len(text) <= most && slurm.Printable(text, most+1) == text
}

// nonNil is never null in JSON.
func nonNil[T any](of []T) []T {
	if of == nil {
		return []T{}
	}
	return of
}

// Status returns how the controller fares now, as far as a caller may know. It asks nobody,
// and so always answers.
func (s *Service) Status(_ context.Context, who Caller) epdapi.ControllerStatus {
	status := s.options.Status()
	if !who.canSeeAll() { // it may name other people's jobs
		status.Trouble, status.LastImplausible, status.Queue.Trouble, status.Nodes.Trouble = "", "", "", ""
		status.MissedPrologs = nil
	}
	return status
}

// Reload has the configuration read again. The error is [epdapi.ErrRequest] for one
// that can't be used.
func (s *Service) Reload(_ context.Context, who Caller) (*epdapi.ReloadAnswer, error) {
	if err := Administrators.Admits(who); err != nil {
		return nil, err
	}
	return s.options.Reload()
}
