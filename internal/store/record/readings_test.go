package record_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/internal/store/record"
)

// Whatever was sampled: the mean over time is that of the samples, within what a
// point is rounded by, and no reading lies outside of its points' spread.
func TestReadingsKeepMeansAndExtremesInBoundedSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := record.NewReadingsSampler(2, time.Second)
		joules, seconds, low, high := 0.0, 0.0, math.Inf(1), 0.0
		for gpu := range 2 {
			at := time.Duration(0)
			for range rapid.IntRange(0, 200).Draw(t, "samples") {
				d := time.Duration(rapid.Int64Range(1, 20_000).Draw(t, "ms")) * time.Millisecond
				watts := rapid.Float64Range(0, 700).Draw(t, "watts")
				s.Add(at, at+d, watts, float64(1000+gpu))
				joules, seconds, at = joules+watts*d.Seconds(), seconds+d.Seconds(), at+d
				low, high = min(low, watts), max(high, watts)
			}
		}
		r := s.Readings()
		if seconds == 0 {
			if !r.IsZero() || r.Encode() != nil {
				t.Fatalf("%+v of nothing", r)
			}
			return
		}
		back, err := record.DecodeReadings(r.Encode())
		if err != nil || !reflect.DeepEqual(back, r) || len(r.Encode()) > 1600 ||
			len(r.Power) > record.MaxReadingPoints {
			t.Fatalf("%+v comes back as %+v, %v, from %d bytes", r, back, err, len(r.Encode()))
		}
		if least, most := extremes(t, &r); math.Abs(least-low) > 0.5 || math.Abs(most-high) > 0.5 {
			t.Fatalf("from %g to %g, want %g to %g", least, most, low, high)
		}
	})
}

// extremes returns the least and the most power of readings at 1000 to 1001 MHz.
func extremes(t *rapid.T, r *record.Readings) (least, most float64) {
	least = math.Inf(1)
	for i, p := range r.Power {
		if c := r.Core[i]; p.Known != c.Known || p.Known &&
			!(p.Low <= p.Mean && p.Mean <= p.High && c.Mean >= 1000 && c.Mean <= 1001) {
			t.Fatalf("point %d is %+v, %+v", i, p, c)
		}
		if p.Known {
			least, most = min(least, p.Low), max(most, p.High)
		}
	}
	return least, most
}

func TestReadingsOfAConstantRunAreConstant(t *testing.T) {
	s := record.NewReadingsSampler(1, time.Second)
	for i := range 1000 {
		at := time.Duration(i) * time.Second
		s.Add(at, at+time.Second, 250, 1200)
	}
	s.Add(-time.Minute, 0, 900, 1) // before the start
	s.Add(5*time.Second, 5*time.Second, 900, 1)
	s.Add(0, time.Second, math.NaN(), -1)
	r := s.Readings()
	if r.Interval != 16*time.Second || len(r.Power) != 63 || r.GPUs != 1 {
		t.Fatalf("%d points of %s", len(r.Power), r.Interval)
	}
	for i := range r.Power {
		if r.Power[i] != (record.ValueRange{Mean: 250, Low: 250, High: 250, Known: true}) ||
			r.Core[i].Mean != 1200 {
			t.Fatalf("point %d is %+v, %+v", i, r.Power[i], r.Core[i])
		}
	}
	if n := len(r.Encode()); n > 400 {
		t.Errorf("%d bytes", n)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back record.Readings
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, r) {
		t.Errorf("%s comes back as %+v, %v", text, back, err)
	}
}

func FuzzDecodeReadings(f *testing.F) {
	s := record.NewReadingsSampler(2, time.Second)
	s.Add(2*time.Second, 5*time.Second, 100, 1000)
	good := s.Readings()
	for _, seed := range [][]byte{
		nil,
		{1},
		{1, 1, 1, 1, 0, 0},
		{2, 1, 1},
		good.Encode(),
		bytes.Repeat([]byte{1}, 2000),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, blob []byte) {
		r, err := record.DecodeReadings(blob)
		if err != nil {
			if !errors.Is(err, record.ErrReadings) {
				t.Fatal(err)
			}
			return
		}
		back, err := record.DecodeReadings(r.Encode())
		if err != nil || !reflect.DeepEqual(back, r) {
			t.Fatalf("%+v comes back as %+v, %v", r, back, err)
		}
	})
}

// A controller that knew nothing of readings may have acknowledged the outcome.
func TestReadingsDontTellOutcomesApart(t *testing.T) {
	s := record.NewReadingsSampler(1, time.Second)
	s.Add(0, time.Second, 100, 1000)
	without := record.Outcome{Cluster: "a", RunID: "r"}
	with := without
	with.Readings = s.Readings()
	a, err1 := without.Digest()
	b, err2 := with.Digest()
	if err1 != nil || err2 != nil || a != b {
		t.Errorf("%x and %x, %v, %v", a, b, err1, err2)
	}
}
