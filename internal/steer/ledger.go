package steer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/internal/spool"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/lever"
	"github.com/epplan/epplan/statedir"
)

// phase is how far a change is.
type phase string

const (
	phaseIntended  phase = "intended" // about to be made: the value is Was or After
	phaseInForce   phase = "in_force" // the value is After
	phaseUndoing   phase = "undoing"  // about to be taken back: the value is After or Before
	phaseTakenOver phase = "left"     // somebody else changed the value: it's theirs
	// The value is Before: ours may come back, with a slurmctld that lost the last change, by a change that it
	// makes late, and with tasks of an array that started before.
	phaseUndone phase = "undone"
)

// ledgerEntry is one value that was changed, or may have been.
type ledgerEntry struct {
	lever.Undo // what it was before us, and what it is to be
	// The value from which After is about to be set; in phase intended.
	Was   string    `json:"was,omitempty"`
	Past  []string  `json:"past,omitempty"` // our values that were in force before After, oldest first
	Phase phase     `json:"phase"`
	At    time.Time `json:"at"` // of the last change: a snapshot from before it says nothing
	over  bool      // the job has ended, and may still be requeued
}

// maxPastValues is how many former values are kept: tasks of an array that start keep
// the value of that time.
const maxPastValues = 8

// leverKey names a value that can be changed: a lever of a job or of a node. It has at
// most one entry.
type leverKey struct {
	lever lever.Kind
	job   slurm.JobID
	node  string
}

func leverKeyOf(u *lever.Undo) leverKey { return leverKey{u.Lever, u.Job, u.Node} }

func (k leverKey) String() string {
	if k.job != 0 {
		return string(k.lever) + " of job " + k.job.String()
	}
	return string(k.lever) + " of node " + k.node
}

// compare returns the order in which entries are handled.
func (k leverKey) compare(o leverKey) int {
	return cmp.Or(strings.Compare(string(k.lever), string(o.lever)), cmp.Compare(k.job, o.job),
		strings.Compare(k.node, o.node))
}

// isOwnValue reports whether a value is ours, of now or of before: the one from before us isn't.
func (e *ledgerEntry) isOwnValue(value string) bool {
	return value != e.Before && (value == e.After || slices.Contains(e.Past, value))
}

// notePast keeps a value that was in force, or may come to be.
func (e *ledgerEntry) notePast(value string) {
	e.Past = append(slices.DeleteFunc(e.Past, func(p string) bool { return p == value }), value)
	e.Past = e.Past[max(0, len(e.Past)-maxPastValues):]
}

// setTarget notes that a value is about to be set.
func (e *ledgerEntry) setTarget(from, to string) {
	if from != e.Before {
		e.notePast(from)
	}
	e.Was, e.After, e.Phase = from, to, phaseIntended
}

// ledger is the entries, and the file that has them.
type ledger struct {
	disk    spool.FS
	dir     string
	entries map[leverKey]*ledgerEntry
	dirty   bool  // the file isn't up to date
	newer   error // the file is a newer epd's, and stays as it is: nothing is written, and so nothing set
}

const (
	ledgerFile      = "levers.json"
	ledgerTempFile  = ledgerFile + ".tmp"
	ledgerAsideFile = ledgerFile + ".aside-"
	ledgerSchema    = 1
)

// ledgerJSON is the ledger's file.
type ledgerJSON struct {
	Schema  int            `json:"schema"`
	Entries []*ledgerEntry `json:"entries"`
}

// openLedger reads the ledger of a folder. One that can't be understood is moved
// aside and comes back as an error beside an empty ledger; one of a newer epd stays where it is,
// beside an empty ledger that can't be saved. Only with no ledger at all the error is one of the
// file system.
func openLedger(disk spool.FS, dir string, now time.Time) (l *ledger, aside, err error) {
	l = &ledger{disk: disk, dir: dir, entries: make(map[leverKey]*ledgerEntry)}
	if err := disk.MakeDir(dir); err != nil {
		return nil, nil, fmt.Errorf("open the ledger of levers: %w", err)
	}
	path := filepath.Join(dir, ledgerFile)
	data, err := disk.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("open the ledger of levers: %w", err)
	}
	if aside = l.decode(data); aside == nil {
		return l, nil, nil
	}
	clear(l.entries)
	if errors.Is(aside, statedir.ErrNewer) {
		l.newer = fmt.Errorf("%w: nothing is set while %s, which names what that epd set in Slurm, is there; "+
			"if it isn't coming back, undo that by hand and move the file away", aside, path)
		return l, nil, nil
	}
	if err := l.moveAside(now); err != nil {
		return nil, nil, fmt.Errorf("move the ledger of levers aside: %w", errors.Join(err, aside))
	}
	return l, aside, nil
}

// moveAside moves the ledger's file to a name that nothing has.
func (l *ledger) moveAside(now time.Time) error {
	files, err := l.disk.List(l.dir)
	if err != nil {
		return err
	}
	name, err := statedir.FreeName(ledgerAsideFile+strconv.FormatInt(now.Unix(), 10),
		func(name string) (bool, error) {
			_, there := files[name]
			return there, nil
		})
	if err == nil {
		err = l.disk.Rename(filepath.Join(l.dir, ledgerFile), filepath.Join(l.dir, name))
	}
	if err == nil {
		err = l.disk.SyncDir(l.dir)
	}
	return err
}

// decode reads the ledger's file. Fields that aren't known are passed over: a newer epd with the same
// schema may have written them.
func (l *ledger) decode(data []byte) error {
	var version struct {
		Schema int `json:"schema"`
	}
	if err := json.Unmarshal(data, &version); err == nil && version.Schema > ledgerSchema {
		return fmt.Errorf("ledger of levers: %w: schema %d, want %d", statedir.ErrNewer, version.Schema,
			ledgerSchema)
	}
	var p ledgerJSON
	in := json.NewDecoder(bytes.NewReader(data))
	if err := in.Decode(&p); err != nil {
		return fmt.Errorf("ledger of levers: %w: %w", statedir.ErrForeign, err)
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("ledger of levers: %w: more follows", statedir.ErrForeign)
	}
	if p.Schema != ledgerSchema {
		return fmt.Errorf("ledger of levers: %w: schema %d", statedir.ErrForeign, p.Schema)
	}
	for _, e := range p.Entries {
		if e == nil || !e.valid() {
			return fmt.Errorf("ledger of levers: %w: an entry", statedir.ErrForeign)
		}
		l.entries[leverKeyOf(&e.Undo)] = e
	}
	return nil
}

// valid reports whether an entry is one that a ledger writes: what it says is going to
// be done to Slurm.
func (e *ledgerEntry) valid() bool {
	switch e.Phase {
	case phaseIntended, phaseInForce, phaseUndoing, phaseTakenOver, phaseUndone:
	default:
		return false
	}
	number := func(s string) bool {
		_, err := strconv.ParseInt(s, 10, 64)
		return err == nil
	}
	switch e.Lever {
	case lever.Nice:
		return e.Job != 0 && e.Node == "" && number(e.Before) && number(e.After)
	case lever.Weight:
		return e.Job == 0 && slurm.ValidNode(e.Node) == nil && number(e.Before) && number(e.After)
	case lever.Power:
		return e.Job == 0 && slurm.ValidNode(e.Node) == nil && e.Undo == powerDown(e.Node)
	case lever.Begin:
		return e.Job != 0 && e.Node == "" && e.Before == "" && number(e.After)
	case lever.Prefer:
		return e.Job != 0 && e.Node == "" && e.After != ""
	}
	return false
}

// keys returns the keys of the entries, in order.
func (l *ledger) keys() []leverKey { return slices.SortedFunc(maps.Keys(l.entries), leverKey.compare) }

// takeOver notes a value of a job's that is ours and had no entry.
func (l *ledger) takeOver(k leverKey, before, after string, at time.Time) {
	l.entries[k] = &ledgerEntry{
		Undo:  lever.Undo{Lever: k.lever, Job: k.job, Before: before, After: after},
		Phase: phaseInForce, At: at,
	}
	l.dirty = true
}

// drop removes an entry.
func (l *ledger) drop(k leverKey) {
	delete(l.entries, k)
	l.dirty = true
}

// save makes the entries durable. After an error the file has either the old or
// the new ones.
func (l *ledger) save() error {
	if l.newer != nil {
		return l.newer
	}
	if !l.dirty {
		return nil
	}
	p := ledgerJSON{Schema: ledgerSchema, Entries: make([]*ledgerEntry, 0, len(l.entries))}
	for _, k := range l.keys() {
		p.Entries = append(p.Entries, l.entries[k])
	}
	data, err := json.Marshal(&p)
	if err == nil {
		err = l.write(data)
	}
	if err != nil {
		return fmt.Errorf("write the ledger of levers: %w", err)
	}
	l.dirty = false
	return nil
}

// write replaces the ledger's file; a crash leaves the old one or the new one.
func (l *ledger) write(data []byte) error {
	draft := filepath.Join(l.dir, ledgerTempFile)
	if err := l.disk.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := l.disk.Create(draft)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := l.disk.Rename(draft, filepath.Join(l.dir, ledgerFile)); err != nil {
		return err
	}
	return l.disk.SyncDir(l.dir)
}
