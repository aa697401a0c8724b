package record_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

func TestASeriesThatOutgrowsItsPointsKeepsItsMean(t *testing.T) {
	sampler := record.NewSeriesSampler(time.Second)
	for second := range 2000 {
		at := time.Duration(second) * time.Second
		sampler.Add(at, at+time.Second, float64(second%4)/4)
	}
	s := sampler.Series()
	if s.Interval() != 8*time.Second || s.Len() != 250 {
		t.Fatalf("%d points of %s", s.Len(), s.Interval())
	}
	for i := range s.Len() {
		if s.At(i) != live.Known(0.375) {
			t.Fatalf("point %d is %s", i, s.At(i))
		}
	}
}

// Whatever was sampled, and however often neighbours were joined: the series'
// mean over time is that of the samples, to what a point is rounded by.
func TestTheMeanOfASeriesIsThatOfWhatWasSampled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sampler := record.NewSeriesSampler(time.Duration(rapid.SampledFrom([]int{1, 7, 60}).Draw(t,
			"interval")) * time.Second)
		want, at := 0.0, time.Duration(0)
		for range rapid.IntRange(1, 800).Draw(t, "samples") {
			d := time.Duration(rapid.Int64Range(1, 300_000).Draw(t, "ms")) * time.Millisecond
			u := rapid.Float64Range(0, 1).Draw(t, "utilisation")
			sampler.Add(at, at+d, u)
			want, at = want+u*d.Seconds(), at+d
		}
		s := sampler.Series()
		if s.Len() > record.MaxPoints || time.Duration(s.Len())*s.Interval() < at ||
			time.Duration(s.Len()-1)*s.Interval() >= at {
			t.Fatalf("%d points of %s for %s", s.Len(), s.Interval(), at)
		}
		sum := 0.0
		for i := range s.Len() {
			from := time.Duration(i) * s.Interval()
			sum += s.At(i).Or(0) * min(at-from, s.Interval()).Seconds()
		}
		if mean := sum / at.Seconds(); math.Abs(mean-want/at.Seconds()) > 0.0026 {
			t.Fatalf("mean %g, want %g", mean, want/at.Seconds())
		}
	})
}

func TestASeriesKnowsItsGaps(t *testing.T) {
	sampler := record.NewSeriesSampler(time.Minute)
	sampler.Add(3*time.Minute, 4*time.Minute, 2)
	sampler.Add(-time.Minute, 0, 1)
	sampler.Add(time.Minute, time.Minute, 1)
	sampler.Add(time.Minute, time.Minute+time.Second, -1)
	sampler.Add(2*time.Minute, 3*time.Minute, math.NaN())
	s := sampler.Series()
	got := make([]string, 0, s.Len())
	for i := range s.Len() {
		got = append(got, s.At(i).String())
	}
	if text := strings.Join(got, " "); text != "unknown 0 unknown 1" {
		t.Error(text)
	}
	sampler.Add(math.MaxInt64-1, math.MaxInt64, 1) // 292 years
	if s := sampler.Series(); s.Len() > record.MaxPoints || s.Interval() <= 0 ||
		s.At(s.Len()-1) != live.Known(1) {
		t.Errorf("%d points of %s", s.Len(), s.Interval())
	}
	var none record.Series
	if none.Encode() != nil {
		t.Error("no series has bytes")
	}
}

func TestASeriesComesBackFromBytesAndJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		interval := time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "interval"))
		sampler := record.NewSeriesSampler(interval)
		for range rapid.IntRange(0, 50).Draw(t, "points") {
			at := time.Duration(rapid.Int64Range(0, 600).Draw(t, "at")) * interval
			sampler.Add(at, at+1, rapid.Float64Range(-1, 2).Draw(t, "utilisation"))
		}
		s := sampler.Series()
		back, err := record.DecodeSeries(s.Encode())
		if err != nil || !bytes.Equal(back.Encode(), s.Encode()) || back.Interval() != s.Interval() {
			t.Fatalf("%v comes back as %v, %v", s, back, err)
		}
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &back); err != nil || !bytes.Equal(back.Encode(), s.Encode()) {
			t.Fatalf("%s comes back as %v, %v", text, back, err)
		}
		if n := len(s.Encode()); n > record.MaxPoints+10 {
			t.Fatalf("%d bytes", n)
		}
	})
}

func FuzzDecodeSeries(f *testing.F) {
	sampler := record.NewSeriesSampler(time.Minute)
	sampler.Add(5*time.Minute, 6*time.Minute, 0.5)
	good := sampler.Series()
	for _, seed := range [][]byte{
		nil,
		{1},
		{1, 0},
		{2, 1, 1},
		{1, 1, 201},
		{1, 1, 255},
		good.Encode(),
		bytes.Repeat([]byte{1}, 300),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, blob []byte) {
		s, err := record.DecodeSeries(blob)
		if err != nil {
			if !errors.Is(err, record.ErrSeries) {
				t.Fatal(err)
			}
			return
		}
		if s.Len() > record.MaxPoints || s.Interval() < 0 || (s.Len() > 0 && s.Interval() == 0) {
			t.Fatalf("%d points of %s", s.Len(), s.Interval())
		}
		for i := range s.Len() {
			if v, ok := s.At(i).Get(); ok && (v < 0 || v > 1) {
				t.Fatalf("point %d is %g", i, v)
			}
		}
		back, err := record.DecodeSeries(s.Encode())
		if err != nil || !reflect.DeepEqual(back, s) {
			t.Fatalf("%v comes back as %v, %v", s, back, err)
		}
	})
}

func FuzzText(f *testing.F) {
	f.Add("plain")
	f.Add("nul\x00 and \xff")
	f.Add(strings.Repeat("é", record.MaxText))
	f.Fuzz(func(t *testing.T, s string) {
		got := record.CleanText(s)
		if !utf8.ValidString(got) || strings.ContainsRune(got, 0) || len(got) > record.MaxText ||
			record.CleanText(got) != got {
			t.Fatalf("%q became %q", s, got)
		}
	})
}

func TestAnOutcomeComesBackFromJSONWithTheSameDigest(t *testing.T) {
	series := record.NewSeriesSampler(time.Minute)
	series.Add(0, time.Minute, 1)
	o := record.Outcome{
		Cluster: "a", RunID: "r", Started: time.Date(2026, 1, 2, 3, 4, 5, 678901234,
			time.FixedZone("east", 3600)),
		GPUs: []string{}, ThrottledS: map[string]float64{"b": 1, "a": 2},
		Course: record.Course{Series: series.Series()}, TimeS: live.Known(0.1),
	}
	canonical, err := o.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	if got := canonical.Started.Format(time.RFC3339Nano); got != "2026-01-02T02:04:05.678901Z" {
		t.Error(got)
	}
	text, err := json.Marshal(&o)
	if err != nil {
		t.Fatal(err)
	}
	var read record.Outcome
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	again, err := read.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	first, err1 := canonical.Digest()
	second, err2 := again.Digest()
	if err1 != nil || err2 != nil || first != second {
		t.Errorf("digests %x and %x, %v, %v", first, second, err1, err2)
	}
	again.Node = "other"
	if third, err := again.Digest(); err != nil || third == first {
		t.Errorf("another outcome has the same digest, %v", err)
	}
}

func TestDetailsMakeNoOtherOutcomeAndTheCourseOfARunDoes(t *testing.T) {
	readings, series := record.NewReadingsSampler(1, time.Second), record.NewSeriesSampler(time.Minute)
	readings.Add(0, time.Second, 200, 1000)
	series.Add(0, time.Minute, 1)
	details := record.Details{
		Slowdown: live.Known(1.1), CapW: live.Known(150), OtherCapsS: live.Known(3),
		Readings: readings.Readings(), Stays: []dvfsmodel.ClockResidency{{Core: 600, Seconds: 1}},
		WorkClock: record.WorkClock{CoreMHz: live.Known(600)}, Notes: []string{"stepped"}, Shared: true,
		NotLocked: live.NotLocked{Kind: live.NotLockedLate, Why: "late"},
		Restarted: record.Restarted{TimeS: live.Known(60)},
	}
	bare := record.Outcome{Cluster: "a", RunID: "r"}
	want, err := bare.Digest()
	if err != nil {
		t.Fatal(err)
	}
	from := reflect.ValueOf(details)
	for i := range from.NumField() {
		name, one := from.Type().Field(i).Name, bare
		if from.Field(i).IsZero() {
			t.Errorf("%s isn't tried", name)
		}
		reflect.ValueOf(&one.Details).Elem().Field(i).Set(from.Field(i))
		if got, err := one.Digest(); got != want || err != nil {
			t.Errorf("with %s it is another outcome, %v", name, err)
		}
	}
	bare.Series = series.Series()
	if got, err := bare.Digest(); got == want || err != nil {
		t.Errorf("another series isn't part of the digest, %v", err)
	}
}

func TestAModelledNodeEnergyMakesNoOtherOutcome(t *testing.T) {
	digest := func(energy float64, source record.Source) [32]byte {
		sum, err := (&record.Outcome{
			Cluster: "a", RunID: "r", NodeEnergyJ: live.Known(energy), NodeSource: source,
		}).Digest()
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	if digest(1, record.Modelled) != digest(2, record.Modelled) {
		t.Error("two modelled energies, two outcomes")
	}
	if digest(1, record.RAPL) == digest(2, record.RAPL) ||
		digest(1, record.RAPL) == digest(1, record.Modelled) {
		t.Error("a measured energy isn't part of the digest")
	}
}

func TestWhatJSONCannotHoldIsInvalid(t *testing.T) {
	o := record.Outcome{Cluster: "a", RunID: "r", ThrottledS: map[string]float64{"x": math.NaN()}}
	if _, err := o.Canonical(); !errors.Is(err, record.ErrInvalid) {
		t.Errorf("got %v", err)
	}
	o = record.Outcome{Cluster: "a", RunID: "r", Clocks: []live.Residency{{Seconds: math.Inf(1)}}}
	if _, err := o.Digest(); !errors.Is(err, record.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

func TestNamesThatDifferInDigitsAreOfOneKind(t *testing.T) {
	for name, want := range map[string]string{
		"md_run": "md run", "md_run_12": "md run", "md-run (3)": "md run", "17.md_run": "md run", "mdrun": "mdrun",
		"4711": "", "": "", "größe_2": "größe", "a\xff1": "a",
	} {
		if got := record.NameKind([]byte(name)); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
