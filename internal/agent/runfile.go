package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/epplan/epplan/live"
)

// runSchema is the version of the runs' files. Older ones are read, too.
const runSchema = 3

// runFile is a run's file.
type runFile struct {
	Schema   int      `json:"schema"`
	Run      live.Run `json:"run"`
	HandsOff string   `json:"hands_off,omitempty"`
	// Counters are nil where the GPUs have none.
	Counters *counters `json:"counters,omitempty"`
	Outcome  *Outcome  `json:"outcome,omitempty"` // once it ended
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
	if err := checkRun(&r.Run); err != nil {
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
		return readOld[runFile1](data)
	case 2:
		return readOld[runFile2](data)
	case runSchema:
		var r runFile
		return &r, decodeStrict(data, &r)
	}
	return nil, fmt.Errorf("schema %d, want 1 to %d", version.Schema, runSchema)
}

// readOld reads a run's file of an older version.
func readOld[F any, O interface {
	*F
	renewed() (*runFile, error)
}](data []byte) (*runFile, error) {
	old := O(new(F))
	if err := decodeStrict(data, old); err != nil {
		return nil, err
	}
	return old.renewed()
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
