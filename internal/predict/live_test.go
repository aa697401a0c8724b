package predict_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/predict"
)

// pasts returns a made-up history in which each user's template has a script of its own.
func pasts(seed uint64, jobs int) []predict.Past {
	t := made(seed, jobs)
	out := make([]predict.Past, jobs)
	for i := range out {
		j := &t.Jobs[i]
		script := uint64(1)
		for _, c := range []byte(j.Owner + j.Labels[0]) {
			script = script*31 + uint64(c)
		}
		out[i] = predict.Past{Job: *j, Outcome: t.Outcomes[i], Script: script}
	}
	return out
}

// quick are settings with few trees.
func quick() *predict.Settings {
	s := predict.LiveSettings()
	s.Trees.Trees = 40
	return &s
}

func reader(all []predict.Past) func(context.Context) ([]predict.Past, error) {
	return func(context.Context) ([]predict.Past, error) { return all, nil }
}

func TestAScriptThatRanBeforeIsARepeatWhateverItsName(t *testing.T) {
	l := predict.NewLive(nil)
	job := func(name string) *predict.Features {
		return &predict.Features{
			ID: name, Submit: 1e6, Owner: "ada", Labels: []string{name, "gpu"}, Sizes: []float64{2, 1},
			Requested: 7200,
		}
	}
	if f, ok := l.Predict(time.Second, job("a"), 7); !ok || f[predict.Time].Rung != predict.Prior ||
		f[predict.Time].Value != 3600 {
		t.Errorf("nothing ended: %+v, %v", f, ok)
	}
	for i := range 5 {
		for script, took := range map[uint64]float64{7: 100, 8: 5000} {
			p := predict.Past{
				Job: *job("train"), Script: script, Outcome: predict.Outcome{
					End: 2e6, Completed: true, Value: [3]float64{took, took / 1000, 250},
				},
			}
			p.Job.ID += strconv.Itoa(i) + strconv.FormatUint(script, 10)
			l.End(&p)
		}
	}
	for _, c := range []struct {
		name   string
		script uint64
		rung   predict.Rung
		least  float64
		most   float64
	}{
		{"train", 7, predict.Repeat, 99, 101},
		{"renamed", 8, predict.Repeat, 4999, 5001},
		{"train", 9, predict.Similar, 99, 5001}, // edited
		{"train", 0, predict.Repeat, 99, 5001},  // by its name, where no script is known
		{"other", 9, predict.Similar, 99, 5001},
	} {
		f, ok := l.Predict(time.Second, job(c.name), c.script)
		if got := f[predict.Time]; !ok || got.Rung != c.rung || got.Value < c.least || got.Value > c.most {
			t.Errorf("%s, script %d: %+v, want %s from %g to %g", c.name, c.script, got, c.rung,
				c.least, c.most)
		}
	}
}

func TestTrainingGivesIntervalsThatHold(t *testing.T) {
	all := pasts(3, 4000)
	l := predict.NewLive(quick())
	n, err := l.Train(t.Context(), reader(all[:3000]))
	if err != nil || n != 3000 {
		t.Fatal(n, err)
	}
	inside, off := 0, make([]float64, 0, 1000)
	for i := range all[3000:] {
		p := &all[3000+i]
		f, ok := l.Predict(time.Second, &p.Job, p.Script)
		truth := p.Outcome.ValueOf(predict.Time)
		if !ok || f[predict.Energy].Value <= 0 || f[predict.Power].Value <= 0 {
			t.Fatalf("%+v, %v", f, ok)
		}
		if f[predict.Time].Low <= truth && truth <= f[predict.Time].High {
			inside++
		}
		off = append(off, math.Abs(f[predict.Time].Value-truth)/truth)
		l.End(p)
	}
	slices.Sort(off)
	if part := float64(inside) / 1000; part < 0.86 || part > 0.94 {
		t.Errorf("%.3f of the truths inside, want 0.9", part)
	}
	if middle := off[len(off)/2]; middle > 0.16 {
		t.Errorf("median relative error %.3f, the scatter alone makes about 0.1", middle)
	}
}

func TestWhatEndsDuringATrainingIsNotForgottenNorCountedTwice(t *testing.T) {
	l := predict.NewLive(quick())
	all := pasts(4, 20)
	late := predict.Past{
		Job: predict.Features{
			ID: "late", Submit: 1, Owner: "eve", Labels: []string{"n"}, Sizes: []float64{1}, Requested: 3600,
		},
		Outcome: predict.Outcome{End: 10, Completed: true, Value: [3]float64{42, 1, 100}},
	}
	_, err := l.Train(t.Context(), func(context.Context) ([]predict.Past, error) {
		l.End(&late)
		l.End(&all[19]) // which is read as well
		return all, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if f, _ := l.Predict(time.Second, &late.Job, 0); f[predict.Time].Rung != predict.Repeat ||
		math.Abs(f[predict.Time].Value-42) > 1e-9 {
		t.Errorf("%+v", f[predict.Time])
	}
}

func TestAFailedTrainingChangesNothing(t *testing.T) {
	l := predict.NewLive(quick())
	all := pasts(5, 300)
	if _, err := l.Train(t.Context(), reader(all[:299])); err != nil {
		t.Fatal(err)
	}
	before, _ := l.Predict(time.Second, &all[299].Job, all[299].Script)
	broken := errors.New("the records can't be read")
	if _, err := l.Train(t.Context(),
		func(context.Context) ([]predict.Past, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Train(ctx, reader(all)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if after, _ := l.Predict(time.Second, &all[299].Job, all[299].Script); after != before {
		t.Errorf("%+v, before %+v", after, before)
	}
}

func TestTrainingIsDueWhenATenthEnded(t *testing.T) {
	l := predict.NewLive(quick())
	all := pasts(6, 700)
	for i := range 19 {
		l.End(&all[i])
	}
	if l.NeedsTraining() {
		t.Error("due after 19 jobs")
	}
	l.End(&all[19])
	if !l.NeedsTraining() {
		t.Error("not due after 20 jobs")
	}
	if _, err := l.Train(t.Context(), reader(all[:600])); err != nil || l.NeedsTraining() {
		t.Errorf("due right after a training: %v", err)
	}
	for i := range 60 {
		l.End(&all[600+i])
	}
	if !l.NeedsTraining() {
		t.Error("not due after another tenth")
	}
}

func TestPredictionsAndEndsMeetATrainingInManyGoroutines(t *testing.T) {
	l := predict.NewLive(quick())
	all := pasts(7, 400)
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 1))
			for range 100 {
				p := &all[random.IntN(len(all))]
				if _, ok := l.Predict(10*time.Second, &p.Job, p.Script); !ok {
					t.Error("no prediction")
				}
				l.End(p)
			}
		})
	}
	group.Go(func() {
		if _, err := l.Train(t.Context(), reader(all[:200])); err != nil {
			t.Error(err)
		}
	})
	group.Wait()
}

func BenchmarkLivePrediction(b *testing.B) {
	l := predict.NewLive(nil)
	if _, err := l.Train(b.Context(), reader(pasts(1, 50_000))); err != nil {
		b.Fatal(err)
	}
	next := pasts(2, 5000)
	times := make([]time.Duration, 0, b.N)
	i := 0
	for b.Loop() {
		p := &next[i%len(next)]
		start := time.Now()
		l.Predict(time.Second, &p.Job, p.Script)
		times = append(times, time.Since(start))
		i++
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)*99/100].Nanoseconds()), "p99-ns")
}
