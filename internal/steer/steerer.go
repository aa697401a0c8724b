package steer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"sync"
	"time"

	"github.com/epplan/epplan/internal/begins"
	"github.com/epplan/epplan/internal/colocate"
	"github.com/epplan/epplan/internal/pause"
	"github.com/epplan/epplan/internal/spool"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/lever"
)

// Levers changes Slurm: [lever.Levers].
type Levers interface {
	// Change sets what u says if the value still is from.
	Change(ctx context.Context, from string, u lever.Undo) error
	// Undo goes back to what was before, unless someone else changed the value.
	Undo(ctx context.Context, u lever.Undo) error
}

// Options are what a Steerer works with.
type Options struct {
	// Source asks Slurm. A snapshot from before the last change is of no use: see
	// [ErrStale].
	Source func(context.Context) (*Snapshot, error)
	Levers Levers
	// PowerSaving reports whether Slurm can power nodes down and wake them.
	PowerSaving func(context.Context) (slurm.PowerSaving, error)
	// Booted is when slurmctld began to run: one that was killed may have lost changes from before. Nil:
	// that isn't known.
	Booted func(context.Context) (time.Time, error)
	// DefaultPartition is where jobs go whose users name no partition; nil: that isn't known.
	DefaultPartition func(context.Context) (string, error)
	Settings         func() *Settings // those in force
	Dir              string           // folder of the ledger, for this steerer alone
	Disk             spool.FS         // nil: the operating system's
	Clock            func() time.Time // nil: time.Now
	Log              *slog.Logger     // nil: none
	// MaxChanges is how many changes a step makes at most; 0: 50.
	MaxChanges int
	// Hours are told which GPUs are free for jobs that can wait; nil: nobody is.
	Hours *begins.Book
}

const (
	defaultChanges = 50
	maxFailures    = 3               // of one lever in a row, until it's left alone
	maxGap         = 4 * time.Minute // between snapshots, until what nodes did in between isn't known
	powerSavingTTL = time.Minute     // how long it is believed what power saving there is
)

// ErrStale tells that a snapshot is from before the last change, so that nothing
// can be told from it.
var ErrStale = errors.New("slurm's answer is older than the last change")

// Steerer brings about what [NewPlan] wants. It is safe for concurrent use.
type Steerer struct {
	options Options
	log     *slog.Logger

	mu       sync.Mutex // held during a step; guards what follows
	ledger   *ledger
	failures map[leverKey]int     // of a lever in a row
	idle     map[string]time.Time // by node: since when it has been idle
	naps     sleepHistory
	seen     time.Time // the last snapshot
	steps    *Settings // those of the last step
	shared   bool      // weights may be by what suits jobs that share GPUs
	leaving  bool      // the run ends: nothing but weights is moved
	paused   bool      // everything was taken back, and nothing is wanted
	pausedBy string    // version of the settings then
	saving   struct {  // what Slurm said of power saving, and when it was asked
		slurm.PowerSaving
		asked time.Time
	}

	usual struct { // the default partition, and when it was asked
		partition string
		asked     time.Time
	}

	shown  sync.Mutex // guards what follows: Status doesn't wait for a step
	status Status
	lines  map[jobGroup]line // of groups in order
}

// StepReport is what a step did.
type StepReport struct {
	Set    int // values that were set
	Undone int // values that were taken back
	Failed int // levers that couldn't be moved
	// Values that can't be taken back now: of jobs that run or are held, and of nodes on
	// their way down.
	Waiting int
	Running int // of Waiting: jobs that have started, which Slurm asks for no order any more
	More    int // changes that are due but were left to later steps
}

// Status is how a Steerer fares. Counts are since its start.
type Status struct {
	At      time.Time `json:"at"`      // of the last step
	Paused  bool      `json:"paused"`  // everything was taken back, and nothing is set
	Nice    int       `json:"nice"`    // jobs whose nice has a part of ours
	Prefer  int       `json:"prefer"`  // jobs that prefer a feature by our doing
	Begin   int       `json:"begin"`   // jobs that begin later by our doing
	Weights int       `json:"weights"` // nodes whose weight is ours
	Asleep  int       `json:"asleep"`  // nodes that sleep by our doing
	// Nodes that came back from sleep, whoever had put them there.
	Wakes   int64         `json:"wakes"`
	WakeS   float64       `json:"longest_wake_s"`    // the longest that one took
	Left    []slurm.JobID `json:"left_alone"`        // jobs whose nice or preference someone else changed
	Set     int64         `json:"set"`               // changes made
	Undone  int64         `json:"undone"`            // changes taken back
	Failed  int64         `json:"failed"`            // changes that failed
	Advice  []Advice      `json:"advice"`            // what would be done, and what users might do
	More    int           `json:"more"`              // advice that isn't listed
	Notes   []string      `json:"notes"`             // what can't be done, and why
	Trouble string        `json:"trouble,omitempty"` // why the last step failed
	// Of nodes, for the next job that asks for a part of a GPU.
	Shared *colocate.Order `json:"shared,omitempty"`
	// Whose order pending jobs are put in; empty: deadlines alone count.
	Policy string        `json:"policy,omitempty"`
	Order  []slurm.JobID `json:"order,omitempty"` // the order that is wanted
}

// Open makes a Steerer and reads what an earlier one left in force. A ledger that
// can't be understood is moved aside and logged.
func Open(o *Options) (*Steerer, error) {
	s := newSteerer(o)
	l, aside, err := openLedger(s.options.Disk, s.options.Dir, s.options.Clock())
	if err != nil {
		return nil, err
	}
	if aside != nil {
		s.log.Error("the ledger of levers was moved aside: what it named stays as it is in Slurm",
			"error", aside)
	}
	s.ledger = l
	s.publish(nil, StepReport{}, errors.Join(aside, l.newer))
	return s, nil
}

// newSteerer fills in what the options leave out. The ledger is the caller's to open.
func newSteerer(o *Options) *Steerer {
	s := &Steerer{options: *o, log: o.Log, failures: make(map[leverKey]int)}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.options.Disk == nil {
		s.options.Disk = spool.Disk()
	}
	if s.options.Clock == nil {
		s.options.Clock = time.Now
	}
	if s.options.MaxChanges <= 0 {
		s.options.MaxChanges = defaultChanges
	}
	return s
}

// Run steps now and then every so often, or as often as there is another order of the queue,
// until the context ends. What is in force
// then stays: a later Steerer goes on from it, or takes it back. But the order of
// nodes for jobs that share GPUs is of the moment, and is taken back.
func (s *Steerer) Run(ctx context.Context, every time.Duration) {
	said := ""
	for rest := time.Duration(0); pause.For(ctx, rest) == nil; {
		begin := time.Now()
		_, err := s.Step(ctx)
		rest = s.pause(every, time.Since(begin))
		switch {
		case err == nil:
			said = ""
		case err.Error() != said && ctx.Err() == nil:
			said = err.Error()
			s.log.Warn("slurm's queue can't be steered", "error", err)
		}
	}
	if err := s.undoWeights(ctx); err != nil {
		s.log.Warn("the order of nodes with shared GPUs isn't taken back: the next start does it",
			"error", err)
	}
}

// Where jobs are put in a policy's order, one that comes is before those that were put behind others until
// it has its place, and may start: so it is looked for often, though Slurm is left alone for some times
// as long as a step took.
const (
	orderEvery = 2 * time.Second
	restFactor = 4
)

// pause returns how long it is until the next step.
func (s *Steerer) pause(most, took time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := s.steps.Live.RenewalWithin(most)
	if s.steps.Ranking != nil {
		rest = min(rest, orderEvery)
	}
	return min(most, max(rest, restFactor*took))
}

// Step asks Slurm, takes back what isn't wanted any more, and sets what is
// wanted, no more than MaxChanges together. What fails for one job or node
// doesn't stop the others; the error says that Slurm or the disk doesn't answer.
func (s *Steerer) Step(ctx context.Context) (StepReport, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set := s.options.Settings()
	s.steps = set
	if s.paused && set.Version != s.pausedBy {
		s.paused = false
	}
	report, err := s.step(ctx, set, s.options.MaxChanges)
	if errors.Is(err, ErrStale) {
		return report, nil // there will be another one
	}
	return report, err
}

// UndoAll takes back everything that can be, however much it is. From then on nothing is
// set until the settings have another version. What is left is in the report; steps go on
// taking it back. With an error, try again.
func (s *Steerer) UndoAll(ctx context.Context) (StepReport, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set := s.options.Settings()
	s.paused, s.pausedBy = true, set.Version
	return s.step(ctx, set, anyChanges)
}

const anyChanges = math.MaxInt // changes of a step

// step returns one round. While paused nothing is wanted. Jobs that were submitted with a nice of ours may
// be in no ledger yet: to take everything back, Slurm is asked for them.
func (s *Steerer) step(ctx context.Context, set *Settings, most int) (StepReport, error) {
	if len(s.ledger.entries) == 0 && set.Live.OnlyObserves() && most != anyChanges {
		s.idle = nil
		s.publish(&Plan{}, StepReport{}, nil)
		return StepReport{}, nil
	}
	snap, err := s.options.Source(ctx)
	if err != nil {
		err = fmt.Errorf("ask slurm for its queue: %w", err)
		s.publish(nil, StepReport{}, err)
		return StepReport{}, err
	}
	if s.isStale(snap) {
		return StepReport{}, ErrStale
	}
	if snap.At.Sub(s.seen) > maxGap {
		s.idle, s.naps.idleSince, s.naps.asleep = nil, nil, nil // what went on wasn't watched
	}
	s.seen, s.idle = snap.At, idleSince(snap, s.idle)
	s.naps.observe(snap, s.idle)
	x := indexSnapshot(snap)
	if err := s.askBooted(ctx, x); err != nil {
		err = fmt.Errorf("ask slurm since when it runs: %w", err)
		s.publish(nil, StepReport{}, err)
		return StepReport{}, err
	}
	s.reconcile(x)
	var plan Plan
	if !s.paused {
		ours := s.ownChanges()
		cannot := s.checkSaving(ctx, set, snap)
		ours.Sleeps = s.naps.nodeSleeps(snap, &set.Live, &s.saving.PowerSaving)
		plan = NewPlan(snap, set, ours)
		if cannot != "" && plan.needsPowerSaving(ours) {
			plan.dropPowerChanges(ours, cannot)
		}
		s.addDefaultPartition(ctx, &plan)
	}
	moves, report := s.changesFor(x, plan.Wants)
	moves = s.changesAtEnd(moves)
	s.shared = s.shared && !s.leaving || plan.Shared != nil && len(plan.Shared.Nodes) > 0
	report.More = max(0, len(moves)-most)
	moves = moves[:len(moves)-report.More]
	err = s.recordIntents(moves)
	if err == nil || s.paused { // what is taken back needs no room on a disk
		err = errors.Join(err, s.applyChanges(ctx, moves, &report))
	}
	err = errors.Join(err, s.ledger.save())
	s.publish(&plan, report, err)
	return report, err
}

// orderTTL is for how long the order that was seen last says where newcomers belong.
const orderTTL = time.Minute

// NiceAtSubmit returns the nice with which a job that a user submits to a partition (empty: the default
// one) is no more urgent than those that were put behind others there, which it would pass until it has a
// place; 0: none was. One with a deadline goes first, unless a plan says when it's its turn.
func (s *Steerer) NiceAtSubmit(partition string, uid uint32, deadline bool) int64 {
	s.shown.Lock()
	defer s.shown.Unlock()
	if s.options.Clock().Sub(s.status.At) > orderTTL || s.status.Trouble != "" {
		return 0
	}
	most := int64(0)
	for _, key := range []jobGroup{{partition: partition, all: true}, {partition: partition, uid: uid}} {
		if end := s.lines[key]; end.planned || !deadline {
			most = max(most, end.most)
		}
	}
	return most
}

// addDefaultPartition has what is said of the default partition count where no partition is named, too.
func (s *Steerer) addDefaultPartition(ctx context.Context, plan *Plan) {
	lines := plan.lines
	if len(lines) == 0 && plan.rooms == nil || s.options.DefaultPartition == nil {
		return
	}
	if now := s.options.Clock(); s.usual.asked.IsZero() || now.Sub(s.usual.asked) >= orderTTL {
		partition, err := s.options.DefaultPartition(ctx)
		if err != nil {
			return // the next step asks again; until then such jobs have the nice that they come with
		}
		s.usual.partition, s.usual.asked = partition, now
	}
	if s.usual.partition == "" {
		return
	}
	for key, end := range maps.Clone(lines) {
		if key.partition == s.usual.partition {
			lines[jobGroup{all: key.all, uid: key.uid}] = end
		}
	}
	if plan.rooms != nil {
		plan.rooms.SetDefault(s.usual.partition)
	}
}

// checkSaving asks, now and then, whether Slurm has power saving; where nodes
// can't be powered down it says why.
func (s *Steerer) checkSaving(ctx context.Context, set *Settings, snap *Snapshot) (cannot string) {
	if set.Live.SleepAfter <= 0 || len(snap.Nodes) == 0 {
		return ""
	}
	now := s.options.Clock()
	if s.saving.asked.IsZero() || now.Sub(s.saving.asked) >= powerSavingTTL {
		saving, err := s.options.PowerSaving(ctx)
		if err != nil {
			return "whether slurm has power saving isn't known: " + err.Error()
		}
		if !saving.Enabled && s.saving.asked.IsZero() {
			s.log.Warn("no node is powered down", "error", slurm.ErrNoPowerSaving)
		}
		s.saving.PowerSaving, s.saving.asked = saving, now
	}
	if !s.saving.Enabled {
		return "no node is powered down: " + slurm.ErrNoPowerSaving.Error()
	}
	return ""
}
