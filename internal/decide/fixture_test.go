package decide

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/learn"
	"github.com/epplan/epplan/internal/store/record"
)

const adaptAll = "[live]\nmode = \"enforce\"\nhold_out = 0\nexplore = 0\n[live.adapt]\nmode = \"on\"\n"

// start is when everything in the tests begins.
var start = time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)

// base are a V100's default clocks.
var base = dvfsmodel.Setting{Core: 1380, Mem: 877}

func settings(tb testing.TB, text string) *Settings {
	tb.Helper()
	c, err := config.Load(strings.NewReader(text), "test.toml", nil)
	if err != nil {
		tb.Fatal(err)
	}
	s := NewSettings(c, config.Digest([]byte(text)))
	return &s
}

// noRecords is a store that has nothing and takes everything.
type noRecords struct{}

func (noRecords) WriteProblem() error                                          { return nil }
func (noRecords) PutJob(context.Context, *record.Job) error                    { return nil }
func (noRecords) PutDecision(context.Context, *record.Decision) (int64, error) { return 1, nil }
func (noRecords) DecisionsOfJob(context.Context, string, int64) ([]record.Decision, error) {
	return nil, nil
}

// uncounted counts nothing.
type uncounted struct{}

func (uncounted) Add()  {}
func (uncounted) Done() {}

// newDecider returns one that knows no models, with what it knows of jobs. It writes nothing.
func newDecider(tb testing.TB, seed uint64, clock func() time.Time) (*Decider, *jobs.Tracker) {
	tb.Helper()
	s := settings(tb, adaptAll)
	known := jobs.New(&jobs.Options{
		Clock: clock, Fresh: time.Minute, SeeUser: func(uint32, string, string, string) {},
	})
	return New(&Options{
		Records: noRecords{}, Cluster: "alpha", Settings: func() *Settings { return s }, Jobs: known,
		Models: learn.New(learn.Options{Cluster: "alpha"}), StoreWait: time.Minute, Clock: clock,
		Seed: seed, Log: slog.New(slog.DiscardHandler), Unwritten: uncounted{},
	}), known
}
