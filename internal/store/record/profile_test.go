package record_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/internal/store/record"
)

// waves returns a profile of so many GPUs over so many seconds.
func waves(gpus, seconds int) record.Profile {
	p := record.Profile{Alone: true}
	for g := range gpus {
		s := record.NewProfileSampler(time.Second)
		for i := range seconds {
			s.Add(time.Duration(i)*time.Second, time.Duration(i+1)*time.Second, float64((i+g)%2))
		}
		p.GPUs = append(p.GPUs, record.GPUProfile{
			Utilisation: s.Series(), Memory: s.Series(), PeakMem: int64(g) - 1, MemTotal: 16 << 30,
		})
	}
	return p
}

func TestAProfileComesBackFromItsBytesAndFromJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := waves(rapid.IntRange(1, record.MaxProfileGPUs).Draw(t, "gpus"),
			rapid.IntRange(0, 1000).Draw(t, "seconds"))
		p.Alone = rapid.Bool().Draw(t, "alone")
		back, err := record.DecodeProfile(p.Encode())
		if err != nil || !reflect.DeepEqual(back.Encode(), p.Encode()) || back.Alone != p.Alone ||
			len(back.GPUs) != len(p.GPUs) {
			t.Fatalf("%+v, %v", back, err)
		}
		text, err := json.Marshal(&p)
		var read record.Profile
		if err != nil || json.Unmarshal(text, &read) != nil || !reflect.DeepEqual(read, back) {
			t.Fatalf("%s: %+v, %v", text, read, err)
		}
	})
}

func TestAProfileOfALongRunOnManyGPUsStaysSmall(t *testing.T) {
	p := waves(3*record.MaxProfileGPUs, 100_000)
	if n := len(p.Encode()); n > 14<<10 {
		t.Errorf("%d bytes", n)
	}
	back, err := record.DecodeProfile(p.Encode())
	if err != nil || len(back.GPUs) != record.MaxProfileGPUs ||
		back.GPUs[0].Utilisation.Len() > record.MaxProfilePoints {
		t.Errorf("%d GPUs, %d points, %v", len(back.GPUs), back.GPUs[0].Utilisation.Len(), err)
	}
}

func TestBytesThatAreNoProfileAreRefused(t *testing.T) {
	long := record.NewSeriesSampler(time.Second)
	long.Add(0, 200*time.Second, 1)
	tooMany := record.Profile{GPUs: []record.GPUProfile{{Utilisation: long.Series()}}}
	good := waves(1, 10)
	whole := good.Encode()
	for name, blob := range map[string][]byte{
		"version": {2, 0, 1}, "cut": whole[:len(whole)-1], "more": append(slices.Clip(whole), 0),
		"flags":         {1, 9, 1},
		"version alone": {1}, "no GPU": {1, 0, 0}, "a thousand GPUs": {1, 0, 0xe8, 7, 0, 0, 0, 0},
		"points":        tooMany.Encode(),
		"a huge series": {1, 0, 1, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x7f},
		"a huge number": {1, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
		"very long":     []byte("\x01" + strings.Repeat("\x00", 1<<20)),
	} {
		if p, err := record.DecodeProfile(blob); !errors.Is(err, record.ErrProfile) || !p.IsZero() {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	o := record.Outcome{Cluster: "a", RunID: "r", Course: record.Course{Profile: tooMany}}
	if _, err := o.Canonical(); !errors.Is(err, record.ErrInvalid) {
		t.Errorf("an outcome with it: %v", err)
	}
	if err := json.Unmarshal([]byte(`{"profile":"AgA="}`), &o); !errors.Is(err, record.ErrProfile) {
		t.Errorf("an outcome's text: %v", err)
	}
}

func TestAnOutcomeWithoutProfileIsWrittenAsBefore(t *testing.T) {
	o := record.Outcome{Cluster: "a", RunID: "r"}
	text, err := json.Marshal(&o)
	if err != nil || strings.Contains(string(text), "profile") {
		t.Errorf("%s, %v", text, err)
	}
	before, err := o.Digest()
	o.Profile = waves(1, 5)
	after, failed := o.Digest()
	if err != nil || failed != nil || before == after {
		t.Error("a profile isn't part of what was measured")
	}
}
