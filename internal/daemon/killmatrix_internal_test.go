package daemon

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/internal/testkit/spooltest"
	"github.com/epplan/epplan/internal/testkit/storetest"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// life is what comes to pass on a node. What comes after its process died, the next one sees.
type life struct {
	name   string
	events []event
}

type event func(t *trial)

// lives are those that are cut short. Jobs are numbered from 0, GPUs too.
var lives = []life{
	{"a job", []event{begins(0, 0), delivers, ends(0, 0, 0), delivers}},
	{"a job that fails", []event{begins(0, 0), ends(0, 0, 256), delivers}},
	{
		"one after the other",
		[]event{begins(0, 0), ends(0, 0, 0), begins(1, 0), delivers, ends(1, 0, 0), delivers},
	},
	{"two at a time", []event{begins(0, 0), begins(1, 1), ends(0, 0, 0), delivers, ends(1, 1, 0), delivers}},
	{"requeued without an Epilog", []event{begins(0, 0), begins(0, 0), delivers, ends(0, 0, 0), delivers}},
	{"an Epilog alone", []event{ends(0, 0, 0), delivers}},
	{"a stop and a start in between", []event{begins(0, 0), restarts, ends(0, 0, 0), delivers}},
	{"on a shared GPU", []event{begins(0, 0), begins(1, 0), ends(0, 0, 0), ends(1, 0, 0), delivers}},
}

func begins(job slurm.JobID, on int) event {
	return func(t *trial) {
		answer := t.now.prolog(t.t.Context(), t.hook(hooks.Prolog, job, on, 0))
		switch {
		case t.now.tape.dead():
			t.unanswered[job]++
		case answer.Run != "":
			t.answered[string(answer.Run)] = job
			delete(t.ended, job)
			if answer.Applied {
				t.locks++
			}
			if t.blow.setting.WithoutProfile() != free && t.blow.fault == "" &&
				answer.Applied != (t.held(t.sims()[on]) != free) {
				t.t.Errorf("the Prolog was answered %+v, and the GPU is at %v", answer, t.held(t.sims()[on]))
			}
		}
	}
}

func ends(job slurm.JobID, on, code int) event {
	return func(t *trial) {
		t.now.epilog(t.t.Context(), t.hook(hooks.Epilog, job, on, code))
		t.ended[job] = !t.now.tape.dead() // whether it was heard: what goes on then, a sweep ends
	}
}

func delivers(t *trial) { t.now.outbox.deliver(t.t.Context()) }

func restarts(t *trial) {
	_, _ = t.now.options.Agent.Stop(t.t.Context())
	if !t.now.tape.dead() {
		t.start()
	}
}

// blow is how a life is cut short.
type blow struct {
	life    life
	setting dvfsmodel.Setting
	fault   string // of the GPUs, as [gpu.ParseFaults] reads it
	node    int    // the node's process dies before this step; -1: at the end
	power   uint64 // what isn't durable is lost by this lot; 0: nothing is
	again   int    // the next one dies before this step; -1: it doesn't
	desk    int    // the controller dies before this step; -1: it doesn't
	torn    int    // and its files are then as [desk.restarted] says; 0: whole
	late    bool   // it comes back at the end, not at once

	trouble  trouble // of the network
	troubled int     // with which request
}

// trial is a life with a blow.
type trial struct {
	*machine
	blow  blow
	now   *process
	first slurm.JobID
	lot   *rand.Rand

	answered   map[string]slurm.JobID // by run
	unanswered map[slurm.JobID]int
	ended      map[slurm.JobID]bool // whose Epilog came; whether it was answered
	faults     *gpu.Faults
	mended     bool
	locks      int    // Prologs that were answered with them
	last       string // what the node's process came to do when it died
	deskLast   string // and the controller
	missed     bool   // a process that was to die lived
}

// controls are settings of each control of the simulated GPUs, and of all together.
var controls = []dvfsmodel.Setting{
	{Core: 1700, Mem: 4500, Cap: 180, Profile: dvfsmodel.MaxQ},
	{Core: 1700},
	{Mem: 4500},
	{Cap: 180},
	{Profile: dvfsmodel.MaxQ},
}

var free dvfsmodel.Setting

// lowestClocks are what [gpu.FaultForeign] sets.
var lowestClocks = dvfsmodel.Setting{Core: 1600, Mem: 4000}

// hook returns what Slurm says of a job.
func (t *trial) hook(kind hooks.Hook, job slurm.JobID, on, code int) *hooks.Event {
	return &hooks.Event{
		Version: hooks.ProtocolVersion, Kind: kind, Job: t.first + job, Node: "n1", GPUs: []int{on},
		GPUsKnown: true, UID: 1000, Partition: "gpu", Code: code,
	}
}

// start starts a process.
func (t *trial) start() {
	t.now = t.process()
	t.now.Start(t.t.Context())
}

// play has events come to pass until the node's process dies, and returns those that are left.
func (t *trial) play(events []event) (left []event) {
	for i, happen := range events {
		if t.now.tape.dead() {
			return events[i:]
		}
		happen(t)
		if !t.blow.late {
			t.reopenDesk()
		}
		if !t.now.tape.dead() {
			t.wantHeld()
		}
	}
	return nil
}

// reopenDesk starts the controller again, if it died.
func (t *trial) reopenDesk() {
	if t.desk.tape.dead() {
		t.deskLast = t.desk.tape.last[1]
		var torn bool
		t.desk, torn = t.desk.restarted(t.blow.torn)
		t.missed = t.missed || !torn
		t.blow.torn = 0 // it dies once
	}
}

// run plays the life, and another process what the first one left of it. At the end all has to be in order.
func (t *trial) run() (steps int) {
	t.t.Helper()
	began := t.disk.Operations()
	if t.blow.node >= 0 {
		t.disk.CrashAt(t.blow.node, false)
	}
	if t.blow.desk >= 0 {
		t.desk.tape.disk.CrashAt(t.blow.desk, false)
	}
	t.start()
	left := t.play(t.blow.life.events)
	steps, t.last = t.disk.Operations()-began, t.now.tape.last[1]
	t.boots(t.blow.power > 0)
	if t.blow.fault != "" { // it is still there when the next one starts
		t.start()
		_, _ = t.now.options.Agent.Sweep(t.t.Context(), chainGone, chainGone)
		t.boots(false)
		t.mend()
	}
	if t.blow.again >= 0 {
		t.disk.CrashAt(t.blow.again, false)
		t.start()
		left = t.play(left)
		t.finish()
		t.missed = t.missed || !t.now.tape.dead()
		t.boots(t.blow.power > 0)
	}
	t.start()
	t.wantHeld()
	t.play(left)
	t.finish()
	t.missed = t.missed || t.blow.desk >= 0 && t.deskLast == ""
	t.wantInOrder()
	return steps
}

// finish has Slurm say that all jobs are gone, and what they came to delivered.
func (t *trial) finish() {
	ctx := t.t.Context()
	if _, err := t.now.options.Agent.Sweep(ctx, chainGone, chainGone); err != nil && !t.now.tape.dead() {
		t.t.Error(err)
	}
	for range 3 {
		t.reopenDesk()
		t.now.outbox.deliver(ctx)
	}
}

// boots is what comes after a process died: with a loss of power, a boot of the machine.
func (t *trial) boots(powerLost bool) {
	t.t.Helper()
	t.disk = t.disk.Reboot(powerLost, t.lot)
	if powerLost {
		if err := t.library.Reboot(); err != nil {
			t.t.Fatal(err)
		}
		t.boot++
	}
	t.wantNoted()
}

// mend ends what is wrong with the GPUs. One that was lost is back as new.
func (t *trial) mend() {
	t.t.Helper()
	t.faults.Clear()
	t.mended = true
	if !strings.Contains(t.blow.fault, string(gpu.FaultLost)) &&
		!strings.Contains(t.blow.fault, string(gpu.FaultMissing)) {
		return
	}
	for _, g := range t.sims() {
		if err := g.Reboot(); err != nil {
			t.t.Fatal(err)
		}
	}
}

func (t *trial) sims() []*gpu.Sim {
	t.t.Helper()
	all, err := t.library.Sims()
	if err != nil {
		t.t.Fatal(err)
	}
	return all
}

// held returns what a GPU is really set to, without what somebody else set it to.
func (t *trial) held(g *gpu.Sim) (s dvfsmodel.Setting) {
	t.t.Helper()
	for c := range gpu.NumControls {
		v, err := g.Held(c)
		if err != nil {
			t.t.Fatal(err)
		}
		if !strings.Contains(t.blow.fault, string(gpu.FaultForeign)) || v != c.ValueIn(lowestClocks) {
			c.SetIn(&s, v)
		}
	}
	return s
}

// wantHeld wants GPUs to be set to what their jobs got, and others to nothing. Where a fault keeps a GPU from
// it, its journal must say so.
func (t *trial) wantHeld() {
	t.t.Helper()
	if t.blow.fault != "" && !t.mended {
		t.wantNoted()
		return
	}
	runs := t.now.options.Agent.State().Runs
	for i, g := range t.sims() {
		want, open := t.blow.setting, 0
		for j := range runs {
			r := &runs[j]
			if r.Ended || !slices.Contains(r.GPUs, g.Identity().UUID) {
				continue
			}
			if open++; r.Wants != want {
				want = free // of several runs' wishes, the fastest
			}
			if t.ended[slurm.JobID(r.Job)-t.first] {
				t.t.Errorf("the run of job %d goes on after its Epilog", r.Job)
			}
		}
		if open == 0 {
			want = free
		}
		if got := t.held(g); got != want {
			t.t.Errorf("GPU %d is at %v, want %v", i, got, want)
		}
	}
}

// wantNoted wants all that is set to be in the journal: it is given back by that.
func (t *trial) wantNoted() {
	t.t.Helper()
	for i, g := range t.sims() {
		var entry struct {
			Domains map[string]json.RawMessage `json:"domains"`
		}
		if text, err := t.disk.Read("/journal/" + g.Identity().UUID + ".json"); err == nil {
			if err := json.Unmarshal(text, &entry); err != nil {
				t.t.Error(err)
			}
		}
		held := t.held(g)
		for c := range gpu.NumControls {
			if _, noted := entry.Domains[c.Key()]; c.ValueIn(held) != 0 && !noted {
				t.t.Errorf("the %s of GPU %d is set to %v, and the journal doesn't say so", c, i, c.ValueIn(held))
			}
		}
	}
}

// wantInOrder wants no GPU set, nothing left on the node, and each run recorded once.
func (t *trial) wantInOrder() {
	t.t.Helper()
	t.wantHeld()
	for _, name := range slices.DeleteFunc(t.disk.Names(), isBaseline) {
		t.t.Errorf("left behind: %s", name)
	}
	if left := t.now.options.Spool.Len() + len(t.now.options.Agent.Runs().Ended()); left > 0 {
		t.t.Errorf("%d outcomes are left on the node: %+v", left, t.now.Status(t.t.Context()).Troubles)
	}
	var conflicts strings.Builder
	if err := t.desk.store.Export(t.t.Context(), &conflicts, "outcome_conflicts"); err != nil ||
		conflicts.Len() > 0 {
		t.t.Errorf("delivered as something else before: %s%v", conflicts.String(), err)
	}
	for job := range slurm.JobID(2) {
		t.wantRecordedOnce(job)
	}
}

// wantRecordedOnce wants each run of a job recorded once.
func (t *trial) wantRecordedOnce(job slurm.JobID) {
	t.t.Helper()
	all, err := t.desk.store.OutcomesOfJob(t.t.Context(), "alpha", int64(t.first+job))
	if err != nil {
		t.t.Fatal(err)
	}
	times := map[string]int{}
	for i := range all {
		if times[all[i].RunID]++; !all[i].Unmatched && len(all[i].GPUs) != 1 {
			t.t.Errorf("run %s of job %d is recorded by half: %+v", all[i].RunID, job, all[i])
		}
	}
	runs := 0
	for run, of := range t.answered {
		if of == job {
			if runs++; times[run] != 1 {
				t.t.Errorf("run %s of job %d is recorded %d times", run, job, times[run])
			}
		}
	}
	if most := max(1, runs+t.unanswered[job]); len(all) > most || len(all) == 0 && t.ended[job] {
		t.t.Errorf("job %d is recorded %d times, at most %d are its runs", job, len(all), most)
	}
}

// matrix is many trials.
type matrix struct {
	t      *testing.T
	dir    string
	empty  []byte // a database without records
	every  int    // one of so many trials is made, at random
	lot    *rand.Rand
	desks  int
	job    slurm.JobID
	shared *desk          // of trials that it outlives
	points map[string]int // by who dies when what is wrong
	at     map[string]int // by what was done then
	locks  int
}

func newMatrix(t *testing.T, every int) *matrix {
	t.Helper()
	storetest.NeedSQLite(t)
	x := &matrix{
		t: t, dir: chainDir(t), every: every, lot: rand.New(rand.NewPCG(1, 1)), points: map[string]int{},
		at: map[string]int{},
	}
	path := filepath.Join(x.dir, "empty")
	s, err := store.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if x.empty, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	x.shared = x.desk()
	return x
}

// desk returns a controller without records.
func (x *matrix) desk() *desk {
	x.t.Helper()
	path := filepath.Join(newDir(x.t, x.dir, &x.desks), "db")
	if err := os.WriteFile(path, x.empty, 0o600); err != nil {
		x.t.Fatal(err)
	}
	return newDesk(x.t, path, &tape{disk: spooltest.New()})
}

// trial makes a trial of a blow.
func (x *matrix) trial(b *blow, at *desk) *trial {
	x.t.Helper()
	x.job += 10
	t := &trial{
		blow: *b, first: x.job, answered: map[string]slurm.JobID{}, unanswered: map[slurm.JobID]int{},
		ended: map[slurm.JobID]bool{},
		lot:   rand.New(rand.NewPCG(b.power, uint64(b.node))),
		machine: &machine{
			t: x.t, disk: spooltest.New(), desk: at, chosen: &b.setting, trouble: b.trouble, troubled: b.troubled,
		},
	}
	var err error
	if t.faults, err = gpu.ParseFaults(b.fault); err != nil {
		x.t.Fatal(err)
	}
	t.library, err = gpu.OpenSim("sim:2,model=GTX1080Ti,profiles", builtinProfiles().Board, &gpu.SimOptions{
		Faults: t.faults, Wait: func(time.Duration) {},
	})
	if err != nil {
		x.t.Fatal(err)
	}
	for _, folder := range []string{"/journal", "/runs", "/spool"} {
		if err := t.disk.MakeDir(folder); err != nil {
			x.t.Fatal(err)
		}
	}
	return t
}

// whole plays a life that isn't cut short, for how much there is in it: steps of the node's process, requests.
// A controller of its own has the steps and transactions of that life alone.
func (x *matrix) whole(b blow, at *desk) (steps, requests int) {
	x.t.Helper()
	b.node, b.again, b.desk = -1, -1, -1
	t := x.trial(&b, at)
	steps = t.run()
	x.locks += t.locks
	x.failed(&b)
	return steps, t.requests
}

// wholeDesk returns the controller of a life that isn't cut short, when it is over.
func (x *matrix) wholeDesk(b blow) *desk {
	x.t.Helper()
	at := x.desk()
	x.whole(b, at)
	at.close()
	return at
}

// try makes a trial, if it is one of those that are made.
func (x *matrix) try(layer string, b blow) {
	x.t.Helper()
	if x.lot.IntN(x.every) > 0 {
		return
	}
	at := x.shared
	if b.desk >= 0 {
		at = x.desk()
	}
	t := x.trial(&b, at)
	if t.run(); !t.missed {
		x.points[layer]++
		if b.torn != 0 {
			x.at["at the database's files"]++
		} else {
			x.at[t.layer()]++
		}
	}
	if t.desk != x.shared {
		t.desk.close()
	}
	x.failed(&b)
}

// layer returns where what was done last is done.
func (t *trial) layer() string {
	last := t.last
	if t.blow.node < 0 && t.deskLast != "" {
		last = t.deskLast
	}
	switch last {
	case "lock", "unlock":
		return "at a GPU"
	case "send", "arrive", "answer", "rest of the answer":
		return "at a request"
	case "commit":
		return "at a transaction"
	}
	return "at a file"
}

// failed ends the test at the first trial that fails.
func (x *matrix) failed(b *blow) {
	x.t.Helper()
	if x.t.Failed() {
		x.t.Fatalf("%s: %+v", b.life.name, *b)
	}
}

// faultRules returns all faults of the simulator: with every call, and with the second one alone.
func faultRules(t *testing.T) (rules []string) {
	t.Helper()
	ops := []string{
		"open", "clocks", "lock", "unlock", "limit", "profiles", "read", "processes", "sharing", "*",
	}
	kinds := []string{
		"permission", "unsupported", "transient", "slow", "lost", "missing", "reset", "stuck", "reload", "foreign",
		"unlimited",
	}
	for rule, all := range map[string][]string{"?:slow=1s": ops, "lock:?": kinds} {
		if _, err := gpu.ParseFaults(rule); err == nil || !strings.Contains(err.Error(), fmt.Sprint(all)) {
			t.Fatalf("not all faults are tried: %v, tried are %v", err, all)
		}
	}
	for _, op := range ops {
		for _, kind := range kinds {
			if kind == "slow" {
				kind += "=1s"
			}
			rules = append(rules, fmt.Sprintf("0/%s:%s", op, kind), fmt.Sprintf("0/%s:%s@1x1", op, kind))
		}
	}
	return append(rules, "open:permission@1x1", "open:transient@1x1", "open:unsupported@1x1")
}

// Whoever is killed, at any of its operations, whatever is wrong with the GPUs or the network: no GPU stays
// at clocks that are nobody's, each run is recorded once, nothing stays on the node, and the database is whole.
func TestAKillAnywhereLeavesNoGPUSetNoRunLostAndTheDatabaseWhole(t *testing.T) {
	every, least := shareddata.Rounds(97, 4, 1), shareddata.Rounds(100, 5_000, 20_000)
	for c := range gpu.NumControls {
		if !slices.ContainsFunc(controls, func(s dvfsmodel.Setting) bool {
			v := c.ValueIn(s)
			c.SetIn(&s, 0)
			return v != 0 && s == free
		}) {
			t.Errorf("the %s alone is never set", c)
		}
	}
	x := newMatrix(t, every)
	for _, l := range lives {
		x.killNode(l)
		x.killDesk(l)
	}
	x.killTwo(lives[0])
	x.breakLine()
	x.breakGPUs()
	found, err := store.Check(t.Context(), x.shared.path)
	if err != nil || len(found) > 0 {
		t.Errorf("the database: %q, %v", found, err)
	}
	x.shared.close()
	all := 0
	for _, points := range []map[string]int{x.at, x.points} {
		all = 0
		for _, what := range slices.Sorted(maps.Keys(points)) {
			t.Logf("%-40s %6d", what, points[what])
			all += points[what]
		}
	}
	t.Logf("%-40s %6d; %d runs were at other clocks in lives that weren't cut short", "all", all, x.locks)
	if all < least || x.locks < 10 {
		t.Errorf("%d kills, want %d; %d runs at other clocks", all, least, x.locks)
	}
}

// killNode kills the process of a node at each of its steps, by itself and with the machine.
func (x *matrix) killNode(l life) {
	for _, setting := range controls {
		b := blow{life: l, setting: setting, again: -1, desk: -1}
		steps, _ := x.whole(b, x.shared)
		for b.node = range steps + 1 {
			for b.power = range uint64(3) { // by itself, and by two lots
				x.try("node", b)
			}
		}
	}
}

// killDesk kills the controller at each of its steps, and tears the log of its last transaction.
func (x *matrix) killDesk(l life) {
	b := blow{life: l, setting: controls[0], node: -1, again: -1}
	w := x.wholeDesk(b)
	for b.desk = range len(w.tape.kinds) {
		for _, b.late = range []bool{false, true} {
			x.try("controller", b)
		}
	}
	b.late = false
	commits := w.commits
	for i, kind := range w.tape.kinds {
		if kind != "commit" {
			continue
		}
		b.desk = i + 1
		for b.torn = 1; b.torn <= tears(commits[0]); b.torn++ {
			x.try("controller, within a transaction", b)
		}
		commits = commits[1:]
		for b.torn = -1; b.torn >= -40; b.torn-- { // at most so many
			x.try("controller, while it empties its log", b)
		}
	}
}

// killTwo kills two processes: the next one of the node, or the controller.
func (x *matrix) killTwo(l life) {
	b := blow{life: l, setting: controls[0], desk: -1}
	steps, _ := x.whole(b, x.shared)
	for b.node = range steps {
		for b.again = range steps - b.node {
			x.try("node, twice", b)
		}
	}
	b.again = -1
	last := len(x.wholeDesk(b).tape.kinds)
	for b.node = range steps {
		for b.desk = range last {
			x.try("node and controller", b)
		}
	}
}

// breakLine has the network fail each request in each way, and kills the node's process at each step then.
func (x *matrix) breakLine() {
	for _, l := range lives[:2] {
		b := blow{life: l, setting: controls[0], again: -1, desk: -1}
		for b.trouble = lineWell + 1; b.trouble < numTroubles; b.trouble++ {
			_, requests := x.whole(b, x.shared)
			for b.troubled = range requests + 1 {
				steps, _ := x.whole(b, x.shared)
				for b.node = range steps + 1 {
					x.try("node, and the network fails", b)
				}
			}
		}
	}
}

// breakGPUs kills the node's process at one of three steps of a life with each control and each fault. Which
// ones, the control and the fault say: each step comes with each kind of fault.
func (x *matrix) breakGPUs() {
	for i, setting := range controls {
		for j, rule := range faultRules(x.t) {
			if testing.Short() && (i+j)%8 != 0 {
				continue
			}
			b := blow{life: lives[0], setting: setting, fault: rule, again: -1, desk: -1}
			steps, _ := x.whole(b, x.shared)
			for b.node = (i + j) % 3; b.node <= steps; b.node += 3 {
				b.power = uint64((j + b.node/3) % 3) // one in three by itself
				x.try("node, and a GPU fails", b)
			}
		}
	}
}
