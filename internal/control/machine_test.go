package control

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/testkit/storetest"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// submit adds a job that runs at once, under a new id or one that is free again.
func (m *machine) submit(t *rapid.T) {
	m.clock.move(time.Minute)
	id := slurm.JobID(rapid.Uint32Range(100, 130).Draw(t, "id"))
	before := m.jobs[id]
	if before != nil && (m.away || !before.State.Ended()) {
		return // Slurm gives an id again after years: by then epd has heard what became of its job
	}
	now := m.clock.read()
	j := &slurm.Job{
		ID: id, Name: rapid.SampledFrom([]string{"train", "train", "train", "other"}).Draw(t, "name"),
		User: "ada", UID: 1000,
		Partition: "gpu", Submit: now, Start: now, NodeCount: 1, ArrayTask: -1,
		State: slurm.JobState{Base: slurm.Running}, Allocated: slurm.TRES{"gres/gpu": 1},
		TimeLimit: drawLimit(t),
		Comment:   rapid.SampledFrom(wishWords).Draw(t, "comment"),
		GPUFreq:   rapid.SampledFrom([]string{"", "", "", "", "", "medium"}).Draw(t, "--gpu-freq"),
	}
	if rapid.Bool().Draw(t, "by the hook") {
		m.hook(t, j)
	}
	m.jobs[id], m.most[id] = j, j.TimeLimit
	if rapid.Bool().Draw(t, "listed") || before != nil {
		m.hear()
	}
}

// hook has a job's submission come from slurmctld, whose answer is in the job's comment.
func (m *machine) hook(t *rapid.T, j *slurm.Job) {
	answer, err := m.Submit(t.Context(), &hooks.Submission{
		Version: hooks.ProtocolVersion, Kind: "batch", UID: j.UID, Name: hooks.Hex(j.Name),
		Partition: hooks.Hex(j.Partition), Comment: hooks.Hex(j.Comment), TRESPerNode: "gres/gpu:1",
		TRESFreq: hooks.Hex(j.GPUFreq),
	})
	if m.submissions++; err != nil || answer.AdminComment == "" {
		t.Fatalf("a submission is answered %+v, %v", answer, err)
	}
	j.AdminComment = string(answer.AdminComment)
}

// report has a node's agent tell how it fares: nothing but what is shown of the node comes of it.
func (m *machine) report(t *rapid.T) {
	watts := float64(rapid.IntRange(0, 300).Draw(t, "watts"))
	r := &epdapi.NodeReport{
		Node: rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "node"), Version: "1", At: m.clock.read(),
		GPUs: []epdapi.NodeGPU{{
			GPU: epdapi.GPU{UUID: "GPU-a", Model: "Tesla V100", Power: watts}, Read: true,
		}},
	}
	for _, run := range m.runs {
		if run.outcome == nil && run.request.Node == r.Node && len(r.Runs) < epdapi.MaxReportRuns {
			r.Runs = append(r.Runs, epdapi.NodeRun{Run: epdapi.Run{
				ID: run.request.RunID, Job: uint32(run.request.Job), GPUs: []string{"GPU-a"},
				Setting: run.decision.Setting, Started: run.decision.Created,
			}})
		}
	}
	if _, err := m.Report(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	list := m.Queries.Nodes(t.Context(), query.ForEPD())
	i := slices.IndexFunc(list.Nodes, func(n epdapi.NodeView) bool { return n.Name == r.Node })
	if i < 0 || list.Nodes[i].Report == nil || len(list.Nodes[i].Report.Runs) != len(r.Runs) ||
		list.Nodes[i].Report.GPUs[0].Power != watts {
		t.Fatalf("a node reported %+v, shown are %+v", r, list)
	}
}

// outlook has an agent ask for a run that lasts: Slurm's word of its end comes through, and nothing changes.
func (m *machine) outlook(t *rapid.T) {
	for _, r := range m.runs {
		if r.outcome != nil {
			continue
		}
		o, err := m.Outlook(t.Context(), epdapi.OutlookRequest{
			Job: r.request.Job, Node: r.request.Node, RunID: r.request.RunID,
		})
		j := m.jobs[r.request.Job]
		running := !m.away && j != nil && going(j) && !r.decision.Created.Before(j.Submit) && j.Restarts == 0
		if err != nil || running && (o.Life != live.LifeAlive || !o.Ended.IsZero()) {
			t.Fatalf("job %+v: %+v, %v", j, o, err)
		}
	}
}

// suspend has Slurm hold a job for a while: what its runs took is no measure of its work.
func (m *machine) suspend(t *rapid.T) {
	m.clock.move(time.Minute)
	if j := m.pick(t, going); j != nil {
		j.Suspended, m.suspended[j.ID] = m.clock.read(), true
		m.clock.move(time.Minute)
	}
}

var wishWords = []string{
	"", "", "", "", "epplan:off", "epplan:fixed=945", "epplan:fixed=9999", "epplan:deadline=+900s",
	"epplan:deadline=+20s",
}

func drawLimit(t *rapid.T) live.Limit {
	minutes := rapid.SampledFrom([]int{60, 60, 60, 15, 12, 2, 0, -1}).Draw(t, "limit")
	switch minutes {
	case 0:
		return live.Unlimited()
	case -1:
		return live.Limit{}
	}
	return live.LimitOf(time.Duration(minutes) * time.Minute)
}

// open runs are those whose outcome isn't recorded.
func (m *machine) of(id slurm.JobID) *agentRun {
	for _, r := range slices.Backward(m.runs) {
		if r.request.Job == id && r.request.Node == "n1" {
			return r
		}
	}
	return nil
}

// pick returns one of the jobs of Slurm that a condition allows; nil: there is none.
func (m *machine) pick(t *rapid.T, which func(*slurm.Job) bool) *slurm.Job {
	var ids []slurm.JobID
	for _, id := range slices.Sorted(maps.Keys(m.jobs)) {
		if which(m.jobs[id]) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return m.jobs[rapid.SampledFrom(ids).Draw(t, "job")]
}

func going(j *slurm.Job) bool { return !j.State.Ended() }

// ask has an agent ask for a job that starts, or, as its question may come twice,
// for one that runs.
func (m *machine) ask(t *rapid.T) {
	m.clock.move(2 * time.Second)
	j := m.pick(t, going)
	if j == nil {
		return
	}
	r := m.of(j.ID)
	if r == nil || r.decision.Created.Before(j.Submit) {
		m.next++
		r = &agentRun{request: ask(j.ID)}
		r.request.RunID = "run-" + strconv.Itoa(m.next)
		m.fresh(t, r, j)
		m.runs = append(m.runs, r)
		if j.ID%3 == 0 {
			m.follow(t, r)
		}
		return
	}
	switch {
	case r.kept != nil: // a question that was long under way: the answer changes nothing any more
		if _, err := m.Decide(t.Context(), r.request); err != nil {
			t.Fatal(err)
		}
	case r.lost && r.outcome != nil: // an agent asks for no run that it ended
	case r.lost: // it may be decided anew, once
		m.fresh(t, r, j)
	default:
		m.again(t, r)
		if r.second != nil && !r.second.lost && r.second.kept == nil {
			m.again(t, r.second)
		}
	}
}

// follow has the agent of the job's other node ask: it is told the same.
func (m *machine) follow(t *rapid.T, lead *agentRun) {
	request := *lead.request
	request.Node, request.RunID = "n2", lead.request.RunID+"-2"
	d, err := m.Decide(t.Context(), &request)
	if err != nil {
		t.Fatal(err)
	}
	was := &lead.decision
	if d.Apply != was.Apply || d.Core != was.Core || d.Mem != was.Mem || d.Arm != was.Arm || d.Node != "n2" {
		t.Fatalf("a job's nodes are told %+v and %+v", was, d)
	}
	second := *lead
	second.request, second.decision = &request, d
	lead.second = &second
	m.runs = append(m.runs, &second)
}

// again asks a second time: the answer is that of the first.
func (m *machine) again(t *rapid.T, r *agentRun) {
	d, err := m.Decide(t.Context(), r.request)
	if err != nil {
		t.Fatal(err)
	}
	was := &r.decision
	same := d.Apply == was.Apply && d.Core == was.Core && d.Mem == was.Mem && d.Arm == was.Arm
	if m.faulty.err() == nil && !same {
		t.Fatalf("run %s was told %+v, and now %+v", r.request.RunID, was, d)
	}
	if d.Apply && (d.Core != was.Core || d.Mem != was.Mem) {
		t.Fatalf("run %s is told other clocks: %+v, and now %+v", r.request.RunID, was, d)
	}
}

// fresh asks for the first time, and checks what is told by itself.
func (m *machine) fresh(t *rapid.T, r *agentRun, j *slurm.Job) {
	d, err := m.Decide(t.Context(), r.request)
	if err != nil {
		t.Fatalf("a decision is an error: %v", err)
	}
	if record.StoredTime(d.Created).Equal(record.StoredTime(r.decision.Created)) {
		return // the controller has it still
	}
	r.settings = m.Settings()
	r.decision, r.parts = d, lotPartsOn(r.settings, d.GPUModel)
	r.lost = m.faulty.err() != nil
	if r.lost && (d.Apply || d.Arm != live.ArmExcluded) {
		t.Fatalf("without records: %+v", d)
	}
	clocks := d.Core != 0 || d.Mem != 0 // in other modes they are advice
	if d.Mode == live.Enforce && clocks != d.Apply || d.Apply && d.Mode != live.Enforce {
		t.Fatalf("half a decision: %+v", d)
	}
	m.checkArm(t, r)
	if d.Apply {
		m.checkClocks(t, r, j)
	}
}

// checkArm wants the arm to be what the lot says.
func (m *machine) checkArm(t *rapid.T, r *agentRun) {
	d := &r.decision
	drawn, constant := lot(slurm.JobID(d.Job)), 1-r.parts.constant.Or(0)
	ok := false
	switch d.Arm {
	case live.ArmExcluded:
		ok = !d.HoldOut
	case live.ArmHeldOut:
		ok = d.HoldOut && !d.Apply && drawn < r.parts.holdOut.Or(0)
	case live.ArmTreated:
		ok = drawn >= r.parts.holdOut.Or(0) && drawn < constant
	case live.ArmConstant:
		ok = drawn >= constant
	}
	if !ok || d.Mode != live.Enforce && d.Arm != live.ArmExcluded {
		t.Fatalf("lot %v, parts %+v: %+v", drawn, r.parts, d)
	}
}

// checkClocks wants clocks that the device has, that the administrator and the user
// allow, and at which the run ends in time.
func (m *machine) checkClocks(t *rapid.T, r *agentRun, j *slurm.Job) {
	d := &r.decision
	mem := d.Mem
	if mem == 0 {
		mem = base.Mem
	}
	if !slices.Contains(r.request.Clocks[0].Core,
		d.Core) || mem != base.Mem || !r.settings.Live.AllowsClocks(d.Core, mem, base) {
		t.Fatalf("clocks out of bounds: %+v", d)
	}
	if j.Comment == "epplan:off" || j.GPUFreq != "" {
		t.Fatalf("the user wants to be left alone: %+v", d)
	}
	if j.Comment == "epplan:fixed=945" {
		if d.Core != 945 || d.Arm != live.ArmExcluded {
			t.Fatalf("the user fixed 945 MHz: %+v", d)
		}
		return
	}
	limit, upper := m.most[j.ID], d.Upper.Or(-1)
	if !m.away && j.TimeLimit.IsSet() && !(j.TimeLimit.Seconds() <= limit.Seconds() && limit.IsSet()) {
		limit = j.TimeLimit // of a job that it had not heard of the controller asks Slurm itself
	}
	if !limit.IsSet() || upper <= 0 || upper > limit.Seconds() {
		t.Fatalf("a run of up to %v s in a limit of %+v: %+v", upper, limit, d)
	}
	if at := d.Wish.Deadline; !at.IsZero() && d.Created.Add(dvfsSeconds(upper)).After(at) {
		t.Fatalf("the deadline %s isn't kept: %+v", at, d)
	}
}

func dvfsSeconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// end ends a run on its node, and has Slurm know it or not.
func (m *machine) end(t *rapid.T) {
	var lasting []*agentRun
	for _, r := range m.runs {
		if r.outcome == nil {
			lasting = append(lasting, r)
		}
	}
	if len(lasting) == 0 {
		return
	}
	r := rapid.SampledFrom(lasting).Draw(t, "run")
	truth := memoryBound()
	truth.P0 += dvfsmodel.Watt(rapid.IntRange(-10, 10).Draw(t, "watts")) // no two runs are alike
	r.outcome = (&rig{clock: m.clock}).ran(r.decision, r.request.RunID, truth)
	j := m.jobs[r.request.Job]
	if j == nil || r.decision.Created.Before(j.Submit) {
		return
	}
	switch rapid.IntRange(0, 5).Draw(t, "then") {
	case 0: // slurmctld has yet to hear of it
	case 1:
		j.State.Base, j.End = slurm.Failed, m.clock.read()
	case 2:
		j.Submit, j.Start, j.Restarts = m.clock.read(), m.clock.read(), j.Restarts+1
	default:
		j.State.Base, j.End = slurm.Completed, m.clock.read()
	}
}

// finish ends a job of which slurmctld didn't hear before.
func (m *machine) finish(t *rapid.T) {
	m.clock.move(time.Second)
	if j := m.pick(t, going); j != nil {
		j.State.Base,
			j.End = rapid.SampledFrom([]slurm.State{slurm.Completed, slurm.Timeout}).Draw(t, "state"),
			m.clock.read()
	}
}

// vanish has slurmctld forget a job.
func (m *machine) vanish(t *rapid.T) {
	if j := m.pick(t, func(j *slurm.Job) bool { return j.State.Ended() }); j != nil {
		delete(m.jobs, j.ID)
	}
	if rapid.Bool().Draw(t, "listed") {
		m.hear()
	}
}

// relimit changes a job's limit.
func (m *machine) relimit(t *rapid.T) {
	j := m.pick(t, going)
	if j == nil {
		return
	}
	j.TimeLimit = drawLimit(t)
	if !m.away {
		m.hear()
	}
}

// send hands an outcome over: for the first time, again after an error, or again
// though it was taken, in any order.
func (m *machine) send(t *rapid.T) {
	var ended []*agentRun
	for _, r := range m.runs {
		if r.outcome != nil {
			ended = append(ended, r)
		}
	}
	if len(ended) > 0 {
		m.deliver(t, rapid.SampledFrom(ended).Draw(t, "run"))
	}
}

func (m *machine) deliver(t *rapid.T, r *agentRun) {
	m.clock.move(20 * time.Second)
	receipt, err := m.Record(t.Context(), r.outcome)
	m.count(err)
	switch {
	case err == nil && r.kept == nil && receipt == store.Stored:
		m.read(t, r)
	case err == nil && r.kept != nil && receipt == store.Repeated:
	case errors.Is(err, ErrNotYet) && (m.away || m.lasts(r)):
	case errors.Is(err, store.ErrClosed) && r.kept == nil && m.inStore(t, r) != nil: // the answer got lost
		m.read(t, r)
	case errors.Is(err, store.ErrClosed), err != nil && m.faulty.err() != nil:
	default:
		t.Fatalf("the outcome of run %s, recorded %t: %s, %v", r.request.RunID, r.kept != nil, receipt, err)
	}
}

// count counts an outcome that was taken.
func (m *machine) count(err error) {
	if err == nil {
		m.taken++
	}
}

// lasts reports whether Slurm has a run's job as one that isn't over.
func (m *machine) lasts(r *agentRun) bool {
	j := m.jobs[r.request.Job]
	return j != nil && !j.State.Ended()
}

// spoil sends other readings under a run that was recorded: they count nowhere.
func (m *machine) spoil(t *rapid.T) {
	if len(m.kept) == 0 || m.faulty.err() != nil {
		return
	}
	r := m.kept[rapid.SampledFrom(slices.Sorted(maps.Keys(m.kept))).Draw(t, "run")]
	other := *r.outcome
	other.GPUEnergyJ = live.Known(other.GPUEnergyJ.Or(0) + 1000)
	receipt, err := m.Record(t.Context(), &other)
	m.count(err)
	if err != nil && !errors.Is(err, ErrNotYet) && !errors.Is(err,
		store.ErrClosed) || err == nil && receipt != store.Conflicting {
		t.Fatalf("other readings of run %s: %s, %v", r.request.RunID, receipt, err)
	}
}

// unmatched sends an outcome of which nobody began the run.
func (m *machine) unmatched(t *rapid.T) {
	m.next++
	o := &record.Outcome{
		RunID: "unmatched-" + strconv.Itoa(m.next), JobID: 100, Node: "n1", Unmatched: true,
		Ended: m.clock.read(), Arm: live.ArmExcluded,
		GPUEnergyJ: live.Known(1e5), GPUSource: record.Counter, TimeS: live.Known(500),
		ExitState: record.Completed,
	}
	_, err := m.Record(t.Context(), o)
	if m.count(err); err != nil && m.faulty.err() == nil && !errors.Is(err,
		store.ErrClosed) {
		t.Fatal(err)
	}
}

// reload puts another configuration in force, or tries one that is wrong.
func (m *machine) reload(t *rapid.T) {
	text := rapid.SampledFrom(append([]string{"[live]\nmode = 7\n"}, machineTexts...)).Draw(t,
		"configuration")
	before := m.Settings()
	s, err := ReadSettings(stringsReader(text), "test.toml")
	failed := m.Reload(func() (*Settings, error) { return s, err })
	switch {
	case (err == nil) != (failed == nil), err != nil && m.Settings() != before:
		t.Fatalf("%v, %v", err, failed)
	case err == nil:
		m.text = text
	}
}

// fail has the store fail, or work again.
func (m *machine) fail(t *rapid.T) {
	if m.faulty.err() != nil {
		m.faulty.why.Store(nil)
		if err := m.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := m.Flush(t.Context()); err != nil { // what was told before is in the records
		t.Fatal(err)
	}
	if rapid.Bool().Draw(t, "the answer alone") {
		m.faulty.after.Store(true)
		return
	}
	m.faulty.after.Store(false)
	m.faulty.fail(rapid.SampledFrom([]error{
		store.ErrCorrupt, store.ErrCorrupt, store.ErrClosed,
		store.ErrFull,
	}).Draw(t, "why"))
}

// restart ends the process and starts another one.
func (m *machine) restart(*rapid.T) {
	m.close()
	m.clock.move(time.Minute)
	m.open()
}

// die has an agent ask, and the process end before what it told must be in the records. So does a controller
// whose machine is gone, whose standby goes on with the records.
func (m *machine) die(t *rapid.T) {
	before := m.clock.read()
	m.ask(t)
	for _, r := range m.runs {
		r.lost = r.lost || !r.decision.Created.Before(before)
	}
	m.stop()
	m.running.Wait()
	if err := m.store.Close(); err != nil {
		t.Fatal(err)
	}
	m.clock.move(time.Minute)
	m.open()
}

// retain removes old records, some days later.
func (m *machine) retain(t *rapid.T) {
	m.clock.move(time.Duration(rapid.IntRange(0, 3).Draw(t, "days")) * 24 * time.Hour)
	if m.faulty.err() == nil {
		if err := m.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if days := m.Settings().KeepDays; days > 0 {
			before := m.clock.read().AddDate(0, 0, -days)
			for _, r := range m.runs {
				r.lost = r.lost || r.decision.Created.Before(before) // it goes, though the run lasts
			}
		}
		m.prune(t.Context())
		m.rounds++
		for _, r := range m.kept {
			if r.removed == 0 && m.inStore(t, r) == nil {
				r.removed = m.rounds
			}
		}
		m.decider.ForgetStale()
	}
}

// finishAll lets everything work again, and every run end and be recorded.
func (m *machine) finishAll(t *rapid.T) {
	m.away = false
	m.faulty.why.Store(nil)
	m.faulty.after.Store(false)
	for _, r := range m.runs {
		if r.outcome == nil {
			r.outcome = (&rig{clock: m.clock}).ran(r.decision, r.request.RunID, memoryBound())
		}
	}
	for _, j := range m.jobs {
		if going(j) {
			j.State.Base, j.End = slurm.Completed, m.clock.read()
		}
	}
	for _, r := range m.runs {
		if m.deliver(t, r); r.kept == nil {
			t.Fatalf("the outcome of run %s is never taken", r.request.RunID)
		}
	}
	m.restart(t)
	m.check(t)
}

// Whatever comes in whatever order, a controller fails open, keeps to what it told,
// counts each outcome once, and saves what a plain sum of them says.
func TestAControllerKeepsItsPromisesInAnyOrderOfEvents(t *testing.T) {
	storetest.NeedSQLite(t)
	dir, n := quickDir(t), 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		m := &machine{
			t: t, path: filepath.Join(dir, strconv.Itoa(n)+".db"), clock: &hand{now: start}, text: enforceAll,
			jobs: map[slurm.JobID]*slurm.Job{}, most: map[slurm.JobID]live.Limit{},
			suspended: map[slurm.JobID]bool{}, kept: map[string]*agentRun{}, next: 1000,
		}
		m.open()
		defer func() { m.close() }()
		m.learn(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"": m.check, "submit": m.submit, "report": m.report, "suspend": m.suspend, "outlook": m.outlook,
			"ask": m.ask, "ask for another": m.ask, "end": m.end, "finish": m.finish, "vanish": m.vanish,
			"limit": m.relimit, "send": m.send, "send another": m.send, "spoil": m.spoil,
			"unmatched": m.unmatched, "reload": m.reload,
			"fail": m.fail, "restart": m.restart, "die": m.die, "retain": m.retain,
			"list":      func(*rapid.T) { m.hear() },
			"slurmctld": func(*rapid.T) { m.away = !m.away },
		})
		m.finishAll(rt)
	})
}
