package agent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/statedir"
)

// An agent that somebody goes back to must read what this one writes.
func TestAnEntryIsWrittenToTheByteAsItWasRead(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "journal", "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(filepath.Clean(name))
		if err != nil {
			t.Fatal(err)
		}
		entry, err := decodeEntry(strings.TrimSuffix(filepath.Base(name), current), text)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := entry.encode(); err != nil || string(again) != strings.TrimSpace(string(text)) {
			t.Errorf("%s\nwritten again: %s, %v", text, again, err)
		}
	}
}

func TestAnEntryKeepsAValueFromBefore(t *testing.T) {
	e := Entry{Schema: schema, UUID: "GPU-1", Controls: map[gpu.Control]Held{
		gpu.PowerLimit: {Value: 150, Prior: PriorKnown, PriorValue: 200, Run: "r1", Job: 1},
	}}
	data, err := e.encode()
	if err != nil || !strings.Contains(string(data), `"prior":"known","prior_value":200`) {
		t.Fatalf("%s, %v", data, err)
	}
	again, err := decodeEntry("GPU-1", data)
	if err != nil || again.Controls[gpu.PowerLimit] != e.Controls[gpu.PowerLimit] {
		t.Errorf("%+v, want %+v; %v", again, e, err)
	}
}

func TestNoControlIsSetAboveWhatItWasBefore(t *testing.T) {
	at := func(v gpu.Value) func(gpu.Control) (Prior, gpu.Value, error) {
		return func(gpu.Control) (Prior, gpu.Value, error) { return PriorKnown, v, nil }
	}
	unheld := &Entry{UUID: "GPU-1"}
	held, err := unheld.with(dvfsmodel.Setting{Core: 1600}, time.Now(), at(1700), &live.Run{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []*Entry{unheld, held} { // what is held now isn't asked for again
		if _, err := e.with(dvfsmodel.Setting{Core: 1700}, time.Now(), at(1700), &live.Run{}); err != nil {
			t.Error(err)
		}
		if _, err := e.with(dvfsmodel.Setting{Core: 1701}, time.Now(), at(1700), &live.Run{}); !errors.Is(err,
			ErrSetting) {
			t.Errorf("set above: %v", err)
		}
	}
}

func TestWhatAReadingShowsIsSaidBesideWhatWasSet(t *testing.T) {
	r := gpu.Reading{Core: 1800, Mem: 4500.5}
	runs, set := shownValues(&r, dvfsmodel.Setting{Core: 1600})
	if runs != "1800,4500.5 MHz" || set != "1600,0 MHz" {
		t.Errorf("%q, %q", runs, set)
	}
}

func TestAControlThatNoAgentWroteIsForeign(t *testing.T) {
	const entry = `{"schema":1,"uuid":"GPU-1","domains":{%}}`
	for name, controls := range map[string]string{
		"none":                    ``,
		"unknown":                 `"core":{"value":1600,"prior":"unlocked"},"fan":{"value":1}`,
		"no value":                `"core":{"prior":"unlocked"}`,
		"a key from before":       `"core":{"locked_mhz":1600,"prior":"unlocked"}`,
		"a value below zero":      `"core":{"value":-1600,"prior":"unlocked"}`,
		"null":                    `"core":null`,
		"no prior":                `"core":{"value":1600}`,
		"another prior":           `"core":{"value":1600,"prior":"guessed"}`,
		"a prior without a value": `"core":{"value":1600,"prior":"known"}`,
		"a value of no prior":     `"core":{"value":1600,"prior":"unlocked","prior_value":1700}`,
	} {
		text := strings.Replace(entry, "%", controls, 1)
		if e, err := decodeEntry("GPU-1", []byte(text)); !errors.Is(err, statedir.ErrForeign) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
}
