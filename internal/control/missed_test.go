package control

import (
	"context"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

func TestAJobThatBeganAndEndedWithoutEPDIsKnownByItsEnd(t *testing.T) {
	r, s := newSlurmRig(t, false)
	_, first := r.begin(s, 7)
	s.change(7, func(j *slurm.Job) {
		j.State.Base, j.Restarts, j.Submit, j.Start = slurm.Pending, 1, r.clock.read(), time.Time{}
	})
	r.record(first, store.Stored)
	// The second run, and a whole job, while no epd ran.
	end := func(j *slurm.Job) {
		j.Start = r.clock.read()
		j.State.Base, j.NodeList, j.Nodes, j.End = slurm.Completed, "n[1-2]", []string{"n1", "n2"},
			j.Start.Add(time.Second)
	}
	s.change(7, end)
	for id, change := range map[slurm.JobID]func(*slurm.Job){
		8:  end,
		9:  func(j *slurm.Job) { end(j); j.Allocated = nil }, // no GPUs
		10: func(j *slurm.Job) { end(j); j.NodeList = "elsewhere" },
		11: func(j *slurm.Job) { end(j); j.State.Base, j.NodeList = slurm.Cancelled, "" }, // it never ran
	} {
		s.set(r.job(id, change))
	}
	sync := func() {
		t.Helper()
		if err := takeList(context.Background(), r.Controller, s); err != nil {
			t.Fatal(err)
		}
		r.flush()
	}
	state := func(id slurm.JobID) string {
		t.Helper()
		page, err := r.Queries.Jobs(context.Background(), query.ForEPD(), &epdapi.JobQuery{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range page.Jobs { // the last first
			if page.Jobs[i].ID == int64(id) {
				return page.Jobs[i].State
			}
		}
		return ""
	}
	sync()
	if got := state(8); got != "" {
		t.Errorf("job 8 is %s, though no agent reports from its nodes", got)
	}
	if _, err := r.Report(context.Background(), &epdapi.NodeReport{Node: "n1"}); err != nil {
		t.Fatal(err)
	}
	sync()
	sync()
	for id, want := range map[slurm.JobID]string{7: "COMPLETED", 8: "COMPLETED", 9: "", 10: "", 11: ""} {
		if got := state(id); got != want {
			t.Errorf("job %d is %q, want %q", id, got, want)
		}
	}
	if list, err := r.Queries.Jobs(context.Background(), query.ForEPD(), &epdapi.JobQuery{}); err != nil ||
		list.Jobs[len(list.Jobs)-1].State != "REQUEUED" {
		t.Errorf("%+v, %v: want the first run as requeued", list, err)
	}
	view, err := r.Queries.Job(context.Background(), query.ForEPD(), 7)
	if err != nil || view.Job.State != "COMPLETED" || len(view.Outcomes) != 1 {
		t.Errorf("%+v, %v", view.Job, err)
	}
}

func TestAJobWhoseOutcomeDoesNotComeIsNotShownAsRunningForEver(t *testing.T) {
	r, s := newSlurmRig(t, false)
	_, o := r.begin(s, 7)
	r.flush()
	if _, err := r.Report(context.Background(), &epdapi.NodeReport{Node: "n1"}); err != nil {
		t.Fatal(err)
	}
	s.change(7, func(j *slurm.Job) {
		j.State.Base, j.NodeList, j.Nodes, j.End = slurm.Timeout, "n1", []string{"n1"}, r.clock.read()
	})
	state := func(want string) {
		t.Helper()
		if err := takeList(context.Background(), r.Controller, s); err != nil {
			t.Fatal(err)
		}
		r.flush()
		page, err := r.Queries.Jobs(context.Background(), query.ForEPD(), &epdapi.JobQuery{})
		if err != nil || len(page.Jobs) != 1 || page.Jobs[0].State != want || page.Jobs[0].Workload == "" {
			t.Errorf("%+v, %v: want %s", page, err, want)
		}
		view, err := r.Queries.Job(context.Background(), query.ForEPD(), 7)
		if err != nil || view.Job.State != want {
			t.Errorf("%+v, %v: want %s", view.Job, err, want)
		}
	}
	state("RUNNING")
	r.clock.move(2*patience - time.Second)
	state("RUNNING") // its agent may need a moment
	r.clock.move(time.Second)
	state("TIMEOUT")
	r.clock.move(time.Hour)
	r.record(o, store.Stored)
	state("TIMEOUT")
	if list, err := r.Queries.Jobs(context.Background(), query.ForEPD(), &epdapi.JobQuery{}); err != nil ||
		list.Jobs[0].Runs != 1 {
		t.Errorf("%+v, %v: want the outcome that came after all", list, err)
	}
}

// askedRecords counts how often the records are asked for jobs.
type askedRecords struct {
	everything
	jobs, rows int
}

func (a *askedRecords) Jobs(
	ctx context.Context, f *store.JobFilter, before int64, limit int,
) (store.JobPage, error) {
	a.jobs++
	return a.everything.Jobs(ctx, f, before, limit)
}

func (a *askedRecords) JobRows(
	ctx context.Context, f *store.JobFilter, before int64, limit int,
) (store.ListedPage, error) {
	a.rows++
	return a.everything.JobRows(ctx, f, before, limit)
}

func TestTheRecordsAreAskedOnceForAJobWhoseOutcomeDoesNotCome(t *testing.T) {
	counter, s := &askedRecords{}, &ctld{}
	r := newRig(t, func(o *Options) {
		counter.everything = o.everything()
		o.Records, o.Resolve = recordsIn(counter), s.resolve
	})
	r.begin(s, 7)
	r.flush()
	if _, err := r.Report(context.Background(), &epdapi.NodeReport{Node: "n1"}); err != nil {
		t.Fatal(err)
	}
	s.change(7, func(j *slurm.Job) {
		j.State.Base, j.NodeList, j.Nodes, j.End = slurm.Timeout, "n1", []string{"n1"}, r.clock.read()
	})
	for look := range 2 {
		counter.jobs, counter.rows = 0, 0
		if err := takeList(context.Background(), r.Controller, s); err != nil {
			t.Fatal(err)
		}
		if n := counter.jobs + counter.rows; n != 1 {
			t.Errorf("look %d: asked %d times", look+1, n)
		}
		r.clock.move(2 * patience)
	}
	r.flush()
	if page, err := r.Queries.Jobs(context.Background(), query.ForEPD(), &epdapi.JobQuery{}); err != nil ||
		len(page.Jobs) != 1 ||
		page.Jobs[0].State != "TIMEOUT" {
		t.Errorf("%+v, %v", page, err)
	}
}

func TestARunThatWasRequeuedWhileTheControllerWasAwayIsOneOfItsSubmission(t *testing.T) {
	r, s := newSlurmRig(t, false)
	j, first := r.begin(s, 7)
	r.flush()
	s.change(7, func(j *slurm.Job) {
		j.State.Base, j.Restarts, j.Submit, j.Start = slurm.Pending, 1, r.clock.read(), time.Time{}
	})
	again := rigAt(t, r.path, r.clock, enforceAll, func(o *Options) { o.Resolve = s.resolve })
	if o, err := again.Outlook(context.Background(),
		epdapi.OutlookRequest{Job: 7, Node: "n1", RunID: first.RunID}); err != nil || o.Life != live.LifeGone {
		t.Errorf("%+v, %v", o, err)
	}
	again.record(first, store.Stored)
	list, err := again.Queries.Jobs(context.Background(), query.ForEPD(), &epdapi.JobQuery{})
	if err != nil || len(list.Jobs) != 1 || list.Jobs[0].State != "REQUEUED" {
		t.Errorf("%+v, %v", list, err)
	}
	all, err := again.store.OutcomesOfJob(context.Background(), "alpha", 7)
	if err != nil || len(all) != 1 || !all[0].Submitted.Equal(j.Submit) {
		t.Errorf("%+v, %v: want it submitted at %s", all, err, j.Submit)
	}
}

func TestAJobThatSlurmNamedOnlyAfterItsStartIsListed(t *testing.T) {
	r, s := newSlurmRig(t, false)
	s.fail(slurm.ErrUnreachable)
	d := r.decide(ask(7))
	r.flush()
	o := r.ran(d, ask(7).RunID, memoryBound())
	o.Started = d.Created
	if o.Workload != "" {
		t.Fatalf("decided for workload %q of a job that nobody knows", o.Workload)
	}
	s.fail(nil)
	// A part of a GPU: Slurm counts none, so that its list alone doesn't tell of the job.
	s.set(slurm.Job{
		ID: 7, Name: "train", User: "ada", UID: 1000, Partition: "gpu", Submit: d.Created.Add(-time.Minute),
		NodeCount: 1,
		Start:     d.Created, End: o.Ended, State: slurm.JobState{Base: slurm.Completed},
	})
	r.record(o, store.Stored)
	r.flush()
	list, err := r.Queries.Jobs(context.Background(), query.ForEPD(), &epdapi.JobQuery{})
	if err != nil || len(list.Jobs) != 1 || list.Jobs[0].State != "COMPLETED" || list.Jobs[0].User != "ada" ||
		list.Jobs[0].Runs != 1 {
		t.Errorf("%+v, %v: want the job", list, err)
	}
	all, err := r.store.OutcomesOfJob(context.Background(), "alpha", 7)
	if err != nil || len(all) != 1 || all[0].Workload == "" || all[0].Workload != list.Jobs[0].Workload ||
		all[0].DecisionID == 0 || all[0].Arm != d.Arm {
		t.Errorf("%+v, %v: want the run as it was decided, with the workload of its job", all, err)
	}
}
