package control

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

func TestARunWhileTheControllerWasAwayIsKnownByItsJob(t *testing.T) {
	slurmctld := &ctld{}
	r := newRig(t, func(o *Options) { o.Resolve = slurmctld.resolve })
	j := r.job(7, nil)
	began := r.clock.read()
	r.clock.move(time.Minute)
	j.State.Base = slurm.Completed
	slurmctld.set(j)
	o := &record.Outcome{
		RunID: "away", JobID: 7, Node: "n1", GPUModel: "Tesla V100", Started: began,
		Ended: r.clock.read(),
		GPUs:  []string{"GPU-a"}, TimeS: live.Known(60), GPUEnergyJ: live.Known(6000),
		GPUSource: record.Counter,
	}
	r.record(o, store.Stored)
	list, err := r.store.OutcomesOfJob(context.Background(), "alpha", 7)
	if err != nil || len(list) != 1 {
		t.Fatalf("%d outcomes, error %v", len(list), err)
	}
	known := r.decide(ask(8)) // for the names of workload and GPU model
	if got := list[0]; got.GPUModel != known.GPUModel || got.Workload == "" || got.Arm != live.ArmExcluded ||
		got.ExitState != record.Completed {
		t.Errorf("outcome %+v", got)
	}
	if about := r.stored(7); about.User != "ada" || about.Workload != list[0].Workload {
		t.Errorf("job %+v", about)
	}
	r.record(o, store.Repeated)
}

func TestAUserHearsOfALimitThatWouldDoOnlyWhereItIsFarTooLong(t *testing.T) {
	r := newRig(t, nil)
	r.under(enforceAll + "limit_hints = true\n")
	submission := func(partition string, minutes uint32) *hooks.Submission {
		return &hooks.Submission{
			Version: hooks.ProtocolVersion, UID: 1000, Name: "train", Partition: hooks.Hex(partition),
			TimeLimit:   minutes,
			TRESPerNode: "gres:gpu:1", MinNodes: 1, Kind: "batch",
		}
	}
	said := func(s *hooks.Submission) string {
		t.Helper()
		answer, err := r.Submit(context.Background(), s)
		if err != nil {
			t.Fatal(err)
		}
		return string(answer.Message)
	}
	if got := said(submission("gpu", 600)); got != "" {
		t.Errorf("of a workload that isn't known: %q", got)
	}
	for id := range slurm.JobID(fewRuns + 1) {
		if got := said(submission("gpu", 600)); got != "" {
			t.Errorf("after %d runs: %q", id, got)
		}
		r.run(id+1, memoryBound()) // about 10 minutes each
	}
	if got := said(submission("gpu", 600)); !strings.Contains(got, "--time=") {
		t.Errorf("10 hours for 10 minutes: %q", got)
	}
	for name, s := range map[string]*hooks.Submission{
		"a limit that fits": submission("gpu", 20), "no limit": submission("gpu", 0),
	} {
		if got := said(s); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
	observing := settings(t, mode("observe"))
	if err := r.Reload(func() (*Settings, error) { return observing, nil }); err != nil {
		t.Fatal(err)
	}
	if got := said(submission("gpu", 600)); got != "" {
		t.Errorf("observing: %q", got)
	}
}

// unknown returns a run of a job with a script of which Slurm doesn't tell in time when
// it begins.
func (r *rig) unknown(s *ctld, id slurm.JobID, script string) (slurm.Job, *record.Outcome) {
	r.t.Helper()
	answer, err := r.Submit(context.Background(), &hooks.Submission{
		Version: hooks.ProtocolVersion, UID: 1000, Name: "train", TRESPerNode: "gres:gpu:1", Kind: "batch",
		Script: hooks.Hex(script),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.clock.move(time.Minute)
	j := slurm.Job{
		ID: id, Name: "train", User: "ada", UID: 1000, Partition: "gpu", Submit: r.clock.read(),
		Start: r.clock.read(), NodeCount: 1,
		TimeLimit: live.LimitOf(time.Hour), Allocated: slurm.TRES{"gres/gpu": 1},
		AdminComment: string(answer.AdminComment),
	}
	r.clock.move(10 * time.Second)
	s.fail(context.DeadlineExceeded)
	request := ask(id)
	request.RunID = "late-" + request.RunID
	d := r.decide(request)
	s.fail(nil)
	if d.Workload != "" || d.Apply {
		r.t.Fatalf("decided %+v of a job that isn't known", d)
	}
	o := r.ran(d, request.RunID, memoryBound())
	o.ExitState, o.Started = "", d.Created
	j.State.Base, j.End = slurm.Completed, r.clock.read()
	return j, o
}

// workloadOf is that of a job's only outcome.
func (r *rig) workloadOf(id slurm.JobID) string {
	r.t.Helper()
	list, err := r.store.OutcomesOfJob(context.Background(), "alpha", int64(id))
	if err != nil || len(list) != 1 {
		r.t.Fatalf("job %d: %d outcomes, error %v", id, len(list), err)
	}
	return list[0].Workload
}

func TestRunsThatSlurmToldOfTooLateTeachTheirWorkload(t *testing.T) {
	r, s := newSlurmRig(t, false)
	for id := slurm.JobID(1); id <= 6; id++ {
		j, o := r.unknown(s, id, "the script")
		s.set(j)
		r.record(o, store.Stored)
		if got := r.workloadOf(id); got == "" || got != r.workloadOf(1) {
			t.Errorf("job %d is of workload %q, want that of job 1: %q", id, got, r.workloadOf(1))
		}
	}
	other, o := r.unknown(s, 7, "another script")
	s.set(other)
	r.record(o, store.Stored)
	if got := r.workloadOf(7); got == "" || got == r.workloadOf(1) {
		t.Errorf("another script is of workload %q", got)
	}
	next, _ := r.unknown(s, 8, "the script")
	next.State.Base, next.End = slurm.Running, time.Time{}
	s.set(next)
	if d := r.decide(ask(8)); !d.Apply || d.Workload != r.workloadOf(1) {
		t.Errorf("after six runs: %+v", d)
	}
}

func TestAWorkloadIsLookedUpByIDAndSubmissionAndNeverByTheIDAlone(t *testing.T) {
	accounted := func(j slurm.Job) []slurm.AccountingRecord {
		return []slurm.AccountingRecord{{
			ID: j.ID, State: j.State, Submit: j.Submit, Start: j.Start, End: j.End,
		}}
	}
	for name, tc := range map[string]struct {
		later func(r *rig, s *ctld, j slurm.Job)
		known bool
	}{
		"Slurm has another job under the id": {later: func(_ *rig, s *ctld, j slurm.Job) {
			s.rows = accounted(j)
			j.Submit, j.Start, j.AdminComment = j.Submit.Add(time.Hour), j.Start.Add(time.Hour), ""
			s.set(j)
		}},
		"the records have another job under the id": {
			later: func(_ *rig, s *ctld, j slurm.Job) { s.rows = accounted(j) },
		},
		"the records have the job": {known: true, later: func(r *rig, s *ctld, j slurm.Job) {
			lasting := j
			lasting.State.Base = slurm.Running
			r.Jobs.Observe([]slurm.Job{lasting})
			about := r.Jobs.Get(j.ID).LiveRecord("alpha", j.ID)
			about.State = string(j.State.Base)
			r.decider.WriteJob(about) // such as after another node's outcome
			r.Jobs.Observe([]slurm.Job{j})
			r.flush()
			s.rows = accounted(j)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := newSlurmRig(t, true)
			before, first := r.begin(s, 7) // ids begin again after that
			before.State.Base = slurm.Completed
			s.set(before)
			r.record(first, store.Stored)
			s.purge(7)
			if err := takeList(context.Background(), r.Controller, s); err != nil {
				t.Fatal(err)
			}
			r.clock.move(time.Hour)
			j, o := r.unknown(s, 7, "the script")
			tc.later(r, s, j)
			if _, err := r.Record(context.Background(), o); err != nil {
				t.Fatal(err)
			}
			list, err := r.store.OutcomesOfJob(context.Background(), "alpha", 7)
			if err != nil || len(list) != 2 || list[0].Workload == "" {
				t.Fatalf("%+v, %v", list, err)
			}
			if got := list[1].Workload; (got != "") != tc.known || got == list[0].Workload {
				t.Errorf("workload %q", got)
			}
		})
	}
}

// Which GPUs a partition has, its agents say. Where one doesn't, it may have any; and clocks that plans don't
// choose are a GPU's, too.
func TestFixedClocksAreDoubtedByTheGPUsThatTheJobMayGet(t *testing.T) {
	r := newRig(t, nil)
	t4 := config.BuiltinProfiles().Find("T4")
	all := t4.SupportedPairs()
	isUnplanned := func(s dvfsmodel.Setting) bool { return !slices.Contains(t4.Pairs(), s) }
	unplanned := all[slices.IndexFunc(all, isUnplanned)]
	r.sync(fixedSlurm{nodes: []slurm.Node{
		within(gpuNode("n1", "gpu:t4:8", "IDLE"), "told"), within(gpuNode("n2", "gpu:t4:8", "IDLE"), "untold"),
		within(gpuNode("n3", "gpu:t4:8", "IDLE"), "both"), within(gpuNode("n4", "gpu:t4:8", "IDLE"), "both"),
	}})
	for node, model := range map[string]string{"n1": "T4", "n3": "T4", "n4": "V100"} {
		gpu := epdapi.NodeGPU{GPU: epdapi.GPU{UUID: "GPU-0", Model: model}}
		r.hear(&epdapi.NodeReport{Node: node, GPUs: []epdapi.NodeGPU{gpu}})
	}
	for watts, says := range map[int]string{5: "so none is set", 65: "", 9000: "so none is set"} {
		answer, err := r.Submit(t.Context(), &hooks.Submission{
			Version: hooks.ProtocolVersion, UID: 1000, Name: "train", Partition: "told", TRESPerNode: "gres:gpu:1",
			MinNodes: 1, Kind: "batch", Comment: hooks.Hex(fmt.Sprintf("epplan:cap=%d", watts)),
		})
		if got := string(
			answer.Message,
		); err != nil || (got == "") != (says == "") ||
			!strings.Contains(got, says) {
			t.Errorf("%d W: %q, want %q; %v", watts, got, says, err)
		}
	}
	for partition, doubted := range map[string]string{"told": "on T4", "untold": "", "both": ""} {
		for pair, says := range map[dvfsmodel.Setting]string{
			{Core: 1087, Mem: 877}: doubted, // a V100's
			unplanned:              "",
			{Core: 9999, Mem: 877}: "no GPU there has these clocks",
		} {
			answer, err := r.Submit(t.Context(), &hooks.Submission{
				Version: hooks.ProtocolVersion, UID: 1000, Name: "train", Partition: hooks.Hex(partition),
				TRESPerNode: "gres:gpu:1", MinNodes: 1, Kind: "batch",
				Comment: hooks.Hex(fmt.Sprintf("epplan:fixed=%v,%v", float64(pair.Core), float64(pair.Mem))),
			})
			got := string(answer.Message)
			if err != nil || (got == "") != (says == "") || !strings.Contains(got, says) ||
				partition == "told" && strings.Contains(got, "V100") {
				t.Errorf("%v in partition %s: %q, want %q; %v", pair, partition, got, says, err)
			}
		}
	}
}

func TestAWishThatCanHardlyBeMetIsAnsweredAtSubmission(t *testing.T) {
	r := newRig(t, nil)
	for comment, want := range map[string]string{
		"epplan:fixed=9999": "no GPU there has these clocks", "epplan:deadline=+1s": "the time limit is",
		"epplan:deadline=yesterday": "want", "epplan:slowdown=0.5": "from 1 to", "epplan:fast": "want off",
		"epplan:off,fixed=1200": "don't count", "epplan:deadline=+2d,deadline=+3d": "twice", "epplan:offff": "epplan:offff",
		"epplan:off": "", "epplan:deadline=+2d": "", "epplan:slowdown=1.2": "", "runs under epplan": "",
		"epplan:slack=4h": "no price of hours", "epplan:slack=0": "", "epplan:cap=200": "",
	} {
		answer, err := r.Submit(t.Context(), &hooks.Submission{
			Version: hooks.ProtocolVersion, UID: 1000, Name: "train", Partition: "gpu", TimeLimit: 60,
			TRESPerNode: "gres:gpu:1", MinNodes: 1, Kind: "batch", Comment: hooks.Hex(comment),
		})
		if got := string(answer.Message); err != nil || !strings.Contains(got, want) ||
			(got == "") != (want == "") {
			t.Errorf("%q: %q, %v, want %q", comment, got, err, want)
		}
	}
}
