package store_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

func TestEndedJobsComeWithWhatWasPredictedAndWhatAllNodesTook(t *testing.T) {
	s, _ := openNew(t)
	for i := range 3 {
		if err := s.PutJob(t.Context(), job(i)); err != nil {
			t.Fatal(err)
		}
	}
	noted := &record.Decision{
		Cluster: "alpha", Token: job(1).Token, Created: start, Rung: "similar",
		TimeS: record.Interval{Value: live.Known(90), Low: live.Known(80), High: live.Known(130)},
	}
	if _, err := s.PutDecision(t.Context(), noted); err != nil {
		t.Fatal(err)
	}
	for i, node := range []string{"n1", "n2"} {
		o := outcome(i)
		o.JobID, o.Submitted, o.Node, o.RunID = job(1).ID, job(1).Submitted, node, "run-"+node
		o.TimeS, o.GPUEnergyJ = live.Known(100+float64(i)), live.Known(1000)
		put(t, s, o, store.Stored)
	}
	all, err := s.Learning.EndedJobs(t.Context(), "alpha", 10)
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	e := all[0]
	if e.ID != job(1).ID || e.TimeS != live.Known(101) || e.EnergyJ != live.Known(2000) || e.Runs != 2 ||
		e.Rung != "similar" ||
		e.PredictedS.High != live.Known(130) || e.PredictedJ.Value != (live.Number{}) ||
		e.ScriptHash != job(1).ScriptHash {
		t.Errorf("%+v", e)
	}
	one, err := s.Learning.EndedJob(t.Context(), "alpha", e.ID, e.Submitted)
	if err != nil || one.TimeS != e.TimeS || one.Ended != e.Ended {
		t.Errorf("%+v, %v", one, err)
	}
	if _, err := s.Learning.EndedJob(t.Context(), "alpha", job(2).ID, job(2).Submitted); !errors.Is(err,
		store.ErrNotFound) {
		t.Errorf("a job that runs: %v", err)
	}
	if all, err := s.Learning.EndedJobs(t.Context(), "alpha", 1); err != nil || len(all) != 0 {
		t.Errorf("the latest job runs: %+v, %v", all, err)
	}
	if d, err := s.DecisionByToken(t.Context(), "alpha", job(1).Token); err != nil || d.Rung != "similar" {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestFeaturesOfCodeStayWhereLaterOnesHaveNone(t *testing.T) {
	s, _ := openNew(t)
	first := &record.Features{
		Cluster: "alpha", Source: "a", Script: []float32{1, 0, 2}, Code: []float32{0, 3},
		Digest: []byte{9}, Seen: start,
	}
	if err := s.Learning.PutFeatures(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	again := &record.Features{
		Cluster: "alpha", Source: "a", Script: []float32{4}, Digest: []byte{8}, Seen: start.Add(time.Hour),
	}
	other := &record.Features{Cluster: "alpha", Source: "b", Seen: start}
	for _, f := range []*record.Features{again, other} {
		if err := s.Learning.PutFeatures(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	all, err := s.Learning.Features(t.Context(), "alpha", 10)
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	if f := all[0]; f.Source != "a" || !slices.Equal(f.Script, again.Script) ||
		!slices.Equal(f.Code, first.Code) || f.Digest[0] != 9 || !f.Seen.Equal(again.Seen) {
		t.Errorf("%+v", f)
	}
	if err := s.Learning.PutFeatures(t.Context(), &record.Features{
		Cluster: "alpha", Source: "a", Seen: start,
		Code: make([]float32, record.MaxFeatures+1),
	}); !errors.Is(err, record.ErrInvalid) {
		t.Errorf("too long: %v", err)
	}
}

func TestEnergiesOfRunsAreThoseThatEndedSinceWithWhatWasPredicted(t *testing.T) {
	s, _ := openNew(t)
	noted := &record.Decision{
		Cluster: "alpha", JobID: 1, Node: "n1", RunID: "run-1", Created: start, DefaultJ: live.Known(1500),
	}
	id, err := s.PutDecision(t.Context(), noted)
	if err != nil {
		t.Fatal(err)
	}
	end := start.Add(time.Hour)
	add := func(i int, change func(o *record.Outcome)) {
		o := outcome(i)
		o.Started, o.Ended, o.GPUEnergyJ, o.Arm = start, end, live.Known(1000), live.ArmTreated
		o.ExitState = record.Completed
		change(o)
		put(t, s, o, store.Stored)
	}
	add(1, func(o *record.Outcome) { o.DecisionID = id })
	add(2, func(o *record.Outcome) { o.DecisionID, o.Arm = id, live.ArmHeldOut })
	add(3, func(o *record.Outcome) { o.GPUEnergyJ = live.Number{} })
	add(4, func(o *record.Outcome) { o.Started, o.TimeS = time.Time{}, live.Number{} })
	add(5, func(o *record.Outcome) { o.Ended = start.Add(time.Second) })
	add(6, func(o *record.Outcome) {
		o.Started, o.TimeS, o.Arm = time.Time{}, live.Known(3600), live.ArmHeldOut
	})
	all, err := s.Learning.RunEnergies(t.Context(), "alpha", start.Add(time.Minute))
	if err != nil || len(all) != 3 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, r := range all {
		predicted := live.Known(1500)
		if r.Arm == live.ArmHeldOut { // its clocks were the default ones
			predicted = live.Number{}
		}
		if !r.Started.Equal(start) || !r.Ended.Equal(end) || r.GPUJ != 1000 || r.DefaultJ != predicted {
			t.Errorf("%+v", r)
		}
	}
	if other, err := s.Learning.RunEnergies(t.Context(), "beta", start); err != nil || len(other) != 0 {
		t.Errorf("of another cluster: %+v, %v", other, err)
	}
}
