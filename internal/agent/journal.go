package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/gpu"
	"github.com/epplan/epplan/live"
)

// schema is the version of the journal's files.
const schema = 1

// errForeign tells that a file isn't one this version wrote.
var errForeign = errors.New("not written by this version")

// Prior is what is known of a clock from before it was locked.
type Prior string

// NVML doesn't tell what is locked, so that a clock is known to have been free
// only where this agent freed it.
const (
	PriorUnlocked Prior = "unlocked"
	PriorUnknown  Prior = "unknown"
)

// HeldClock is one clock that the agent may have locked.
type HeldClock struct {
	MHz   dvfsmodel.MHz `json:"locked_mhz"`
	Prior Prior         `json:"prior"`
	Since time.Time     `json:"since"` // when it was first locked
	// When it was locked at MHz; later changes for the same run aren't written down.
	At  time.Time `json:"at"`
	Run string    `json:"run"`
	Job uint32    `json:"job"`
}

// Entry is the journal's file of one GPU. While it is there, the clocks named
// in it may be locked.
type Entry struct {
	Schema  int                  `json:"schema"`
	UUID    string               `json:"uuid"`
	Bus     string               `json:"bus"`
	Model   string               `json:"model"`
	Boot    string               `json:"boot_id"`
	Driver  string               `json:"driver"`
	Domains map[string]HeldClock `json:"domains"` // by the domain's name
}

// domains are the clocks in the order in which they are locked.
var domains = [...]gpu.Domain{gpu.Core, gpu.Mem}

// held is what the entry says of a clock.
func (e *Entry) held(d gpu.Domain) (HeldClock, bool) {
	if e == nil {
		return HeldClock{}, false
	}
	h, ok := e.Domains[d.String()]
	return h, ok
}

// with is the entry after the clocks of a setting were locked, too. What was
// there before the first lock is kept.
func (e *Entry) with(want dvfsmodel.Setting, at time.Time, prior Prior, run *live.Run) *Entry {
	next := *e
	next.Domains = maps.Clone(e.Domains)
	if next.Domains == nil {
		next.Domains = make(map[string]HeldClock, len(domains))
	}
	for _, d := range domains {
		f := clockOf(want, d)
		if f == 0 {
			continue
		}
		h, locked := e.held(d)
		if !locked {
			h.Prior, h.Since = prior, at
		}
		h.MHz, h.At, h.Run, h.Job = f, at, run.ID, run.Job
		next.Domains[d.String()] = h
	}
	return &next
}

// hasExactly reports whether the entry has exactly the clocks that a setting locks, for
// this run. Then it need not be written again when they only change their values:
// a restart gives them back whatever these are.
func (e *Entry) hasExactly(want dvfsmodel.Setting, run *live.Run) bool {
	for _, d := range domains {
		h, locked := e.held(d)
		if locked != (clockOf(want, d) != 0) || locked && h.Run != run.ID {
			return false
		}
	}
	return true
}

// without is the entry less one clock.
func (e *Entry) without(d gpu.Domain) *Entry {
	next := *e
	next.Domains = maps.Clone(e.Domains)
	delete(next.Domains, d.String())
	return &next
}

// setting is what the entry's clocks are locked at.
func (e *Entry) setting() dvfsmodel.Setting {
	core, _ := e.held(gpu.Core)
	mem, _ := e.held(gpu.Mem)
	return dvfsmodel.Setting{Core: core.MHz, Mem: mem.MHz}
}

// decodeEntry reads the journal's file of a GPU.
func decodeEntry(uuid string, data []byte) (*Entry, error) {
	var e Entry
	if err := decodeStrict(data, &e); err != nil {
		return nil, fmt.Errorf("journal of %s: %w: %w", uuid, errForeign, err)
	}
	switch {
	case e.Schema != schema:
		return nil, fmt.Errorf("journal of %s: %w: schema %d", uuid, errForeign, e.Schema)
	case e.UUID != uuid:
		return nil, fmt.Errorf("journal of %s: %w: names another GPU", uuid, errForeign)
	}
	known := 0
	for _, d := range domains {
		if h, ok := e.held(d); ok {
			known++
			if !(h.MHz > 0) || h.Prior != PriorUnlocked && h.Prior != PriorUnknown {
				return nil, fmt.Errorf("journal of %s: %w: %s clock", uuid, errForeign, d)
			}
		}
	}
	if known == 0 || known != len(e.Domains) {
		return nil, fmt.Errorf("journal of %s: %w: domains", uuid, errForeign)
	}
	return &e, nil
}

// journal is the folder of entries.
type journal struct{ folder FS }

// put writes an entry, durably when it returns without an error.
func (j journal) put(e *Entry) error {
	data, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("journal of %s: %w", e.UUID, err)
	}
	if err := putFile(j.folder, e.UUID, data); err != nil {
		return fmt.Errorf("journal of %s: %w", e.UUID, err)
	}
	return nil
}

// retire removes a GPU's entry.
func (j journal) retire(uuid string) error {
	if err := retireFile(j.folder, uuid); err != nil {
		return fmt.Errorf("clear the journal of %s: %w", uuid, err)
	}
	return nil
}

// read reads a GPU's entry. An error that is errForeign says that there is one
// which can't be read.
func (j journal) read(uuid string) (*Entry, error) {
	data, err := j.folder.ReadFile(uuid + current)
	if err != nil {
		return nil, fmt.Errorf("journal of %s: %w", uuid, err)
	}
	return decodeEntry(uuid, data)
}

// errReturned tells that somebody gave a GPU's clocks back beside the agent.
var errReturned = errors.New("another process gave its clocks back")

// checkPresent reports whether the journal still has a GPU's entry, as it must while a clock
// may be locked: another process may have removed it, or left word that it gave the
// clocks back.
func (j journal) checkPresent(uuid string) error {
	switch _, err := j.folder.ReadFile(uuid + returnedSuffix); {
	case err == nil:
		return fmt.Errorf("%s: %w", uuid, errReturned)
	case ignoreMissing(err) != nil:
		return fmt.Errorf("journal of %s: %w", uuid, err)
	}
	switch _, err := j.read(uuid); {
	case err != nil && ignoreMissing(err) == nil:
		return fmt.Errorf("%s: %w, and removed their entry from the journal", uuid, errReturned)
	case err != nil:
		return err
	}
	return nil
}

// noteReturned tells the agent whose journal this is that a GPU's clocks are given back.
func (j journal) noteReturned(uuid string) error {
	f, err := j.folder.Create(uuid + returnedSuffix)
	if err == nil {
		err = errors.Join(f.Close(), j.folder.Sync())
	}
	if err != nil {
		return fmt.Errorf("journal of %s: %w", uuid, err)
	}
	return nil
}

// returnedGPUs are the GPUs whose clocks other processes gave back.
func (j journal) returnedGPUs() ([]string, error) {
	all, err := j.folder.Names()
	if err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	var uuids []string
	for _, name := range all {
		if uuid, ok := strings.CutSuffix(name, returnedSuffix); ok {
			uuids = append(uuids, uuid)
		}
	}
	return uuids, nil
}

// removeReturned removes such a word.
func (j journal) removeReturned(uuid string) error {
	if err := ignoreMissing(j.folder.Remove(uuid + returnedSuffix)); err != nil {
		return fmt.Errorf("journal of %s: %w", uuid, err)
	}
	return nil
}
