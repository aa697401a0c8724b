package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/live"
)

// runSchema is the version of the runs' files. Those of version 1 are read, too.
const runSchema = 2

// runFile is a run's file.
type runFile struct {
	Schema   int     `json:"schema"`
	Run      fileRun `json:"run"`
	HandsOff string  `json:"hands_off,omitempty"`
	// Counters are nil where the GPUs have none.
	Counters *counters `json:"counters,omitempty"`
	Outcome  *Outcome  `json:"outcome,omitempty"` // once it ended
}

// fileRun is a run as its file has it: times are in nanoseconds.
type fileRun struct{ live.Run }

// fileAdaptation is a run's adaptation as its file has it.
type fileAdaptation struct {
	SLA    float64           `json:"sla"`
	Tau    time.Duration     `json:"tau_ns"`
	Writes int               `json:"writes_per_minute"`
	Levels []live.AdaptLevel `json:"levels"`
}

// fileFields are a run's fields; Adapt takes the place of the run's own.
type fileFields struct {
	*live.Run
	Adapt *fileAdaptation `json:"adapt,omitempty"`
}

// MarshalJSON is the run in its file.
func (r fileRun) MarshalJSON() ([]byte, error) {
	fields := fileFields{Run: &r.Run}
	if a := r.Adapt; a != nil {
		fields.Adapt = &fileAdaptation{a.SLA, a.Tau(), a.Writes, a.Levels}
	}
	return json.Marshal(fields)
}

// UnmarshalJSON reads the run in its file.
func (r *fileRun) UnmarshalJSON(text []byte) error {
	fields := fileFields{Run: &r.Run}
	if err := decodeStrict(text, &fields); err != nil {
		return err
	}
	if a := fields.Adapt; a != nil {
		r.Adapt = &live.Adaptation{SLA: a.SLA, TauS: a.Tau.Seconds(), Writes: a.Writes, Levels: a.Levels}
	}
	return nil
}

// residencies are how long clocks were seen, which a run's file has under another key.
type residencies []live.Residency

// fileResidency is one of them in the file.
type fileResidency struct {
	dvfsmodel.Setting
	Seconds float64 `json:"time_s"`
}

// MarshalJSON is the residencies in a run's file.
func (r residencies) MarshalJSON() ([]byte, error) {
	list := make([]fileResidency, 0, len(r))
	for _, one := range r {
		list = append(list, fileResidency(one))
	}
	return json.Marshal(list)
}

// UnmarshalJSON reads the residencies in a run's file.
func (r *residencies) UnmarshalJSON(text []byte) error {
	var list []fileResidency
	if err := decodeStrict(text, &list); err != nil {
		return err
	}
	*r = nil
	for _, one := range list {
		*r = append(*r, live.Residency(one))
	}
	return nil
}

// decodeRun reads a run's file.
func decodeRun(id string, data []byte) (*runFile, error) {
	r, err := readRun(data)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w: %w", id, errForeign, err)
	}
	if r.Run.ID != id {
		return nil, fmt.Errorf("run %s: %w: run %q", id, errForeign, r.Run.ID)
	}
	if err := checkRun(&r.Run.Run); err != nil {
		return nil, fmt.Errorf("run %s: %w: %w", id, errForeign, err)
	}
	return r, nil
}

// readRun reads a run's file of any version.
func readRun(data []byte) (*runFile, error) {
	var version struct {
		Schema int `json:"schema"`
	}
	if err := json.Unmarshal(data, &version); err != nil {
		return nil, err
	}
	switch version.Schema {
	case 1:
		var r runFile1
		if err := decodeStrict(data, &r); err != nil {
			return nil, err
		}
		return r.renewed()
	case runSchema:
		var r runFile
		return &r, decodeStrict(data, &r)
	}
	return nil, fmt.Errorf("schema %d, want 1 or %d", version.Schema, runSchema)
}

// decodeStrict reads one JSON value that has no fields but those of into.
func decodeStrict(data []byte, into any) error {
	in := json.NewDecoder(bytes.NewReader(data))
	in.DisallowUnknownFields()
	if err := in.Decode(into); err != nil {
		return err
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more follows")
	}
	return nil
}
