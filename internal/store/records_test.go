package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// job is job i, whose name isn't text.
func job(i int) *record.Job {
	return &record.Job{
		Cluster: "alpha", ID: int64(1000 + i),
		Submitted: start.Add(time.Duration(i) * time.Minute).Truncate(time.Second),
		Token:     fmt.Sprintf("token-%d", i), User: fmt.Sprintf("user%d", i%2), Account: "acc",
		Partition: "gpu",
		Name:      []byte("a\nb\x00\xff"), ScriptHash: "5ca1ab1e", Workload: "w0",
		Limit: live.LimitOf(90 * time.Minute), Nodes: 1, GPUs: 2,
		State: "PENDING",
	}
}

// decision returns a decision for job i.
func decision(i int) *record.Decision {
	interval := func(v float64) record.Interval {
		return record.Interval{Value: live.Known(v), Low: live.Known(0.9 * v), High: live.Known(1.1 * v)}
	}
	return &record.Decision{
		Cluster: "alpha", JobID: int64(1000 + i), Node: "n1", Token: fmt.Sprintf("token-%d", i), RunID: "r",
		Workload: "w0",
		GPUModel: "V100",
		Setting:  dvfsmodel.Setting{Core: 1200, Mem: 877, Cap: 180, Profile: dvfsmodel.MaxQ},
		TimeS:    interval(100),
		PowerW:   interval(80),
		EnergyJ:  record.Interval{Value: live.Known(8000)}, Reason: "deadline-bound", Mode: "enforce",
		ConfigVersion: "c1", ModelVersion: 3, Arm: live.ArmHeldOut, Created: start,
	}
}

// fill gives every table a row.
func fill(tb testing.TB, s *store.Store) {
	tb.Helper()
	ctx := tb.Context()
	old, recent := outcome(1), outcome(2)
	recent.Profile = profile()
	put(tb, s, old, store.Stored)
	if _, err := s.Prune(ctx, start.Add(time.Hour)); err != nil {
		tb.Fatal(err)
	}
	put(tb, s, recent, store.Stored)
	other := *recent
	other.TimeS = live.Known(1)
	put(tb, s, &other, store.Conflicting)
	if err := s.PutJob(ctx, job(1)); err != nil {
		tb.Fatal(err)
	}
	if _, err := s.PutDecision(ctx, decision(1)); err != nil {
		tb.Fatal(err)
	}
	if _, err := s.Learning.PutModel(ctx, model("first", true)); err != nil {
		tb.Fatal(err)
	}
	out := workload(1)
	if err := s.Learning.UseModel(ctx, out, 0, "why"); err != nil {
		tb.Fatal(err)
	}
	if _, err := s.Learning.AddHistory(ctx, []record.HistoryJob{past(1), past(2)}); err != nil {
		tb.Fatal(err)
	}
	if err := s.Learning.PutFeatures(ctx,
		&record.Features{Cluster: "alpha", Source: "a", Script: []float32{0, 1}, Seen: start}); err != nil {
		tb.Fatal(err)
	}
}

func TestAJobIsBroughtUpToDateAndKeepsItsToken(t *testing.T) {
	s, _ := openNew(t)
	want := job(1)
	if err := s.PutJob(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	update := *want
	update.Token, update.State, update.Limit = "", "RUNNING", live.Unlimited()
	if err := s.PutJob(t.Context(), &update); err != nil {
		t.Fatal(err)
	}
	update.Token = want.Token
	if got := lastJob(t, s, want.ID); !reflect.DeepEqual(got, update) {
		t.Errorf("got %+v, want %+v", got, update)
	}
}

func TestAnIDThatComesAgainIsAnotherJob(t *testing.T) {
	s, _ := openNew(t)
	first, second := job(1), job(1)
	second.Submitted = second.Submitted.Add(time.Hour)
	for _, j := range []*record.Job{second, first} {
		if err := s.PutJob(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
	if got := lastJob(t, s, first.ID); !got.Submitted.Equal(second.Submitted) {
		t.Errorf("got the job of %s", got.Submitted)
	}
	if page, err := s.Jobs(t.Context(), &store.JobFilter{}, 0, 10); err != nil || len(page.Jobs) != 2 {
		t.Errorf("%d jobs, %v", len(page.Jobs), err)
	}
}

func TestJobsAreFilteredAndPagesDontMoveWhenJobsCome(t *testing.T) {
	s, _ := openNew(t)
	for i := range 10 {
		if err := s.PutJob(t.Context(), job(i)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name   string
		filter store.JobFilter
		want   int
	}{
		{"all", store.JobFilter{}, 10},
		{"cluster", store.JobFilter{Cluster: "beta"}, 0},
		{"user", store.JobFilter{User: "user1"}, 5},
		{"account and partition", store.JobFilter{Account: "acc", Partition: "gpu"}, 10},
		{"workload", store.JobFilter{Workload: "w1"}, 0},
		{"state", store.JobFilter{State: "PENDING"}, 10},
		{"time", store.JobFilter{From: job(2).Submitted, Until: job(7).Submitted}, 5},
	} {
		page, err := s.Jobs(t.Context(), &c.filter, 0, 100)
		if err != nil || len(page.Jobs) != c.want || page.Next != 0 {
			t.Errorf("%s: %d jobs, next %d, %v", c.name, len(page.Jobs), page.Next, err)
		}
	}
	first, err := s.Jobs(t.Context(), &store.JobFilter{}, 0, 4)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.PutJob(t.Context(), job(99)); err != nil {
		t.Fatal(err)
	}
	second, err := s.Jobs(t.Context(), &store.JobFilter{}, first.Next, 4)
	if err != nil || len(second.Jobs) != 4 || second.Jobs[0].ID != first.Jobs[3].ID-1 {
		t.Errorf("after %d comes %+v, %v", first.Jobs[3].ID, second.Jobs, err)
	}
}

func TestTheLastDecisionCounts(t *testing.T) {
	s, _ := openNew(t)
	first, second := decision(1), decision(1)
	second.Reason = "limit changed"
	for _, d := range []*record.Decision{first, second, decision(2)} {
		var err error
		if d.ID, err = s.PutDecision(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	byToken, err := s.DecisionByToken(t.Context(), "alpha", second.Token)
	if err != nil || !reflect.DeepEqual(byToken, *second) {
		t.Errorf("by token: %+v, %v", byToken, err)
	}
	all, err := s.DecisionsOfJob(t.Context(), "alpha", second.JobID)
	if err != nil || len(all) != 2 || all[0].ID != first.ID || !reflect.DeepEqual(all[1], *second) {
		t.Errorf("all: %+v, %v", all, err)
	}
}

func TestWhatIsNotThereIsNotFound(t *testing.T) {
	s, _ := openNew(t)
	early := decision(1) // made at submission: no id, no node
	early.JobID, early.Node = 0, ""
	if _, err := s.PutDecision(t.Context(), early); err != nil {
		t.Fatal(err)
	}
	for name, look := range map[string]func() error{
		"token":       func() error { _, err := s.DecisionByToken(t.Context(), "alpha", "x"); return err },
		"empty token": func() error { _, err := s.DecisionByToken(t.Context(), "alpha", ""); return err },
		"model":       func() error { _, err := s.Learning.Model(t.Context(), workload(0)); return err },
		"version":     func() error { return s.Learning.UseModel(t.Context(), workload(0), 7, "") },
	} {
		if err := look(); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRecordsWithoutTheirKeyAreInvalid(t *testing.T) {
	s, _ := openNew(t)
	for name, try := range map[string]func() error{
		"job": func() error { return s.PutJob(t.Context(), &record.Job{Cluster: "alpha"}) },
		"decision": func() error {
			_, err := s.PutDecision(t.Context(), &record.Decision{Cluster: "alpha"})
			return err
		},
		"model": func() error { _, err := s.Learning.PutModel(t.Context(), &record.Model{}); return err },
		"model whose coefficients aren't JSON": func() error {
			m := model("x", false)
			m.Coefficients = json.RawMessage("{")
			_, err := s.Learning.PutModel(t.Context(), m)
			return err
		},
	} {
		if err := try(); !errors.Is(err, record.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// model returns a model with a note.
func model(note string, inUse bool) *record.Model {
	return &record.Model{
		WorkloadKey: workload(0), Form: "paper", Coefficients: json.RawMessage(`{"p0":1}`),
		Covariance: []float64{1, 0.5, 0.5, 2}, Samples: 3, Created: start, InUse: inUse, Note: note,
	}
}

// A workload that is fitted anew all day keeps its last versions, and the one that somebody chose, however
// old.
func TestOldVersionsOfAModelAreRemovedButTheOneInUse(t *testing.T) {
	s, path := openNew(t)
	ctx := t.Context()
	other := model("of another workload", true)
	other.WorkloadKey = workload(1)
	if _, err := s.Learning.PutModel(ctx, other); err != nil {
		t.Fatal(err)
	}
	const fits, chosen = 110, 3
	for i := range fits {
		if _, err := s.Learning.PutModel(ctx, model(strconv.Itoa(i+1), i < chosen)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path, nil)
	all, err := s.Learning.Models(ctx, workload(0))
	if err != nil || len(all) != store.KeptVersions+2 {
		t.Fatalf("%d versions, %v, want the newest, %d before it and the one in use", len(all), err,
			store.KeptVersions)
	}
	if first, last := all[0], all[len(all)-1]; first.Version != fits || !last.InUse || last.Version != chosen {
		t.Errorf("versions %d to %d", first.Version, last.Version)
	}
	if next, err := s.Learning.PutModel(ctx, model("one more", true)); err != nil || next != fits+1 {
		t.Errorf("version %d, %v", next, err)
	}
	if rest, err := s.Learning.Models(ctx, workload(1)); err != nil || len(rest) != 1 {
		t.Errorf("%d versions of another workload, %v", len(rest), err)
	}
}

func TestOneModelIsInUseAndCanBeRolledBack(t *testing.T) {
	s, _ := openNew(t)
	ctx := t.Context()
	inUse := func() string {
		m, err := s.Learning.Model(ctx, workload(0))
		if errors.Is(err, store.ErrNotFound) {
			return "none"
		}
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(m.Version, " ", m.Note)
	}
	for i, m := range []*record.Model{model("one", true), model("two", true), model("three", false)} {
		version, err := s.Learning.PutModel(ctx, m)
		if err != nil || version != int64(i+1) {
			t.Fatalf("version %d, %v", version, err)
		}
	}
	changes := []func() error{
		func() error { return s.Learning.UseModel(ctx, workload(0), 3, "by hand") },
		func() error { return s.Learning.UseModel(ctx, workload(0), 2, "got worse") },
		func() error { return s.Learning.UseModel(ctx, workload(0), 1, "worse still") },
		func() error { return s.Learning.UseModel(ctx, workload(0), 0, "hopeless") },
	}
	history := append(make([]string, 0, 1+len(changes)), inUse())
	for _, change := range changes {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		history = append(history, inUse())
	}
	if got := strings.Join(history, ", "); got != "2 two, 3 by hand, 2 got worse, 1 worse still, none" {
		t.Error(got)
	}
	if err := s.Learning.UseModel(ctx, workload(0), 1, "back"); err != nil {
		t.Fatal(err)
	}
	if err := s.Learning.UseModel(ctx, workload(0), 9, "none such"); !errors.Is(err, store.ErrNotFound) ||
		inUse() != "1 back" {
		t.Errorf("a version that isn't there: %v, in use %s", err, inUse())
	}
	all, err := s.Learning.Models(ctx, workload(0))
	want := *model("back", true)
	want.Version = 1
	if err != nil || len(all) != 3 || !reflect.DeepEqual(all[2], want) {
		t.Errorf("all: %+v, %v", all, err)
	}
	if used, err := s.Learning.ModelsInUse(ctx, "alpha"); err != nil || len(used) != 1 || used[0].Version != 1 {
		t.Errorf("in use: %+v, %v", used, err)
	}
}
