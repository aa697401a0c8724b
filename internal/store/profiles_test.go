package store_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// profile is that of a run of half a minute on one GPU.
func profile() record.Profile {
	s := record.NewProfileSampler(time.Second)
	for i := range 30 {
		s.Add(time.Duration(i)*time.Second, time.Duration(i+1)*time.Second, float64(i%2))
	}
	return record.Profile{
		Alone: true, GPUs: []record.GPUProfile{{
			Utilisation: s.Series(), Memory: s.Series(), PeakMem: 1 << 30, MemTotal: 16 << 30,
		}},
	}
}

func TestOnlyWholeCompletedRunsThatWereAloneHaveATellingProfile(t *testing.T) {
	s, _ := openNew(t)
	for i, change := range []func(*record.Outcome){
		func(*record.Outcome) {},
		func(o *record.Outcome) { o.Profile.Alone = false },
		func(o *record.Outcome) { o.ExitState = "TIMEOUT" },
		func(o *record.Outcome) { o.TimeS = live.Number{} },
		func(o *record.Outcome) { o.Unmatched = true },
		func(o *record.Outcome) { o.Profile = record.Profile{} },
		func(o *record.Outcome) { o.Setting = dvfsmodel.Setting{} },
	} {
		o := outcome(3 * i) // all of one workload
		o.Profile = profile()
		change(o)
		put(t, s, o, store.Stored)
		put(t, s, o, store.Repeated)
	}
	all, err := s.Learning.Profiles(t.Context(), workload(0), 10)
	if err != nil || len(all) != 2 || all[0].RunID != "run-000018" || all[1].RunID != "run-000000" {
		t.Fatalf("%+v, %v", all, err)
	}
	want := profile()
	if p := &all[1]; !bytes.Equal(p.Profile.Encode(), want.Encode()) || p.TimeS != 1200 ||
		p.Slowdown != live.Known(1.05) || p.Setting.Core != 1200 || p.Ended.IsZero() {
		t.Errorf("%+v", p)
	}
	if last, err := s.Learning.Profiles(t.Context(), workload(0), 1); err != nil || len(last) != 1 ||
		last[0].RunID != "run-000018" {
		t.Errorf("%+v, %v", last, err)
	}
	counts, err := s.ProfileCounts(t.Context(), "alpha", "", 10)
	if err != nil || len(counts) != 1 || counts[0].WorkloadKey != workload(0) || counts[0].Alone != 5 ||
		counts[0].Shared != 1 || !counts[0].Last.Equal(start.Truncate(time.Microsecond)) {
		t.Errorf("%+v, %v", counts, err)
	}
	for name, want := range map[string]int{"w0": 1, "w1": 0} {
		if counts, err := s.ProfileCounts(t.Context(), "alpha", name, 10); err != nil || len(counts) != want {
			t.Errorf("%s: %+v, %v", name, counts, err)
		}
	}
	if counts, err := s.ProfileCounts(t.Context(), "beta", "", 10); err != nil || len(counts) != 0 {
		t.Errorf("%+v, %v", counts, err)
	}
}

func TestProfilesGoWithTheirOutcomesAndAreExported(t *testing.T) {
	s, _ := openNew(t)
	o := outcome(0)
	o.Profile = profile()
	put(t, s, o, store.Stored)
	var text strings.Builder
	if err := s.Export(t.Context(), &text, "outcome_profiles"); err != nil ||
		!strings.Contains(text.String(), `"alone":1,"profile":[{"interval_s":1,"utilisation":[0,1,0,1`) ||
		!strings.Contains(text.String(), `"peak_memory_bytes":1073741824,"memory_bytes":17179869184}]}`) {
		t.Errorf("%s, %v", text.String(), err)
	}
	if _, err := s.Prune(t.Context(), start.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if all, err := s.Learning.Profiles(t.Context(), workload(0), 10); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	text.Reset()
	if err := s.Export(t.Context(), &text, "outcome_profiles"); err != nil || text.Len() > 0 {
		t.Errorf("%s, %v", text.String(), err)
	}
	put(t, s, o, store.Repeated)
}
