package jobs

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/slurm"
)

// hookedCluster is a cluster with an agent on n1 and none on n2, as a controller hears of it.
type hookedCluster struct {
	*testing.T
	tracker *Tracker
	now     time.Time
	agent   time.Time // since when n1's runs
	jobs    []slurm.Job
	prologs []slurm.JobID // that came to n1
}

func newHookedCluster(t *testing.T) *hookedCluster {
	t.Helper()
	c := &hookedCluster{T: t, now: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC), prologs: []slurm.JobID{}}
	c.agent = c.now.Add(-time.Hour)
	c.tracker = newTracker(func(o *Options) { o.Clock = func() time.Time { return c.now } })
	return c
}

// start has a job with GPUs begin on nodes now.
func (c *hookedCluster) start(id slurm.JobID, nodes string) *slurm.Job {
	c.now = c.now.Add(time.Minute)
	c.jobs = append(c.jobs, slurm.Job{
		ID: id, State: slurm.JobState{Base: slurm.Running}, Allocated: slurm.TRES{"gres/gpu": 2}, NodeList: nodes,
		Submit: c.now, Start: c.now, ArrayTask: -1, AdminComment: "epplan:0123456789ABCDEF",
	})
	return &c.jobs[len(c.jobs)-1]
}

func (c *hookedCluster) list() {
	c.Helper()
	c.now = c.now.Add(10 * time.Second)
	lister := listerOf(c.jobs)
	if _, err := c.tracker.takeJobs(context.Background(), lister); err != nil {
		c.Fatal(err)
	}
}

func (c *hookedCluster) report() {
	c.now = c.now.Add(15 * time.Second)
	c.tracker.Hooks.Reported(&epdapi.NodeReport{Node: "n1", Started: c.agent, Prologs: c.prologs})
}

type listerOf []slurm.Job

func (l listerOf) EachJob(_ context.Context, each func(*slurm.Job) error) (slurm.Unread, error) {
	for i := range l {
		if err := each(&l[i]); err != nil {
			return slurm.Unread{}, err
		}
	}
	return slurm.Unread{}, nil
}

func (listerOf) Nodes(context.Context) ([]slurm.Node, slurm.Unread, error) {
	return nil, slurm.Unread{}, nil
}

func TestAPrologThatNeverCameIsCountedOnceByNode(t *testing.T) {
	c := newHookedCluster(t)
	c.start(7, "n[1-2]")
	c.list()
	c.report()
	if got := c.tracker.Hooks.MissedPrologs(); len(got) != 0 {
		t.Errorf("after one report, which may be older than Slurm's list: %+v", got)
	}
	for range 3 {
		c.report()
		c.list()
	}
	c.start(8, "n1")
	c.list()
	c.report()
	c.report()
	got := c.tracker.Hooks.MissedPrologs()
	if len(got) != 1 || got[0].Node != "n1" || got[0].Jobs != 2 || got[0].Last != 8 {
		t.Errorf("%+v, want jobs 7 and 8 on n1, and nothing of n2, which has no agent", got)
	}
	if nodes := c.tracker.Hooks.MissedProlog(7); !slices.Equal(nodes, []string{"n1"}) {
		t.Errorf("job 7: %v", nodes)
	}
}

func TestNoPrologIsMissedThatCameOrWasntToCome(t *testing.T) {
	for name, happens := range map[string]func(c *hookedCluster){
		"the agent says that it came": func(c *hookedCluster) {
			c.start(7, "n1")
			c.prologs = append(c.prologs,
				7)
		},
		"a decision was asked for": func(c *hookedCluster) {
			c.start(7, "n1")
			c.tracker.Hooks.SawProlog(7,
				"n1")
		},
		"it is said late": func(c *hookedCluster) {
			c.start(7, "n1")
			c.list()
			c.report()
			c.prologs = append(c.prologs, 7)
		},
		"the job has no GPUs":   func(c *hookedCluster) { c.start(7, "n1").Allocated = nil },
		"there is no agent":     func(c *hookedCluster) { c.start(7, "n2") },
		"the agent is older":    func(c *hookedCluster) { c.start(7, "n1"); c.prologs = nil },
		"the agent came later":  func(c *hookedCluster) { c.start(7, "n1"); c.agent = c.now.Add(time.Second) },
		"the Prolog still runs": func(c *hookedCluster) { c.start(7, "n1").Reason = "Prolog" },
		"the node still boots": func(c *hookedCluster) {
			c.start(7, "n1").State.Flags = []slurm.State{slurm.Configuring}
		},
		"it began before the controller": func(c *hookedCluster) {
			j := c.start(7, "n1")
			j.Start, j.Submit = c.now.Add(-time.Hour), c.now.Add(-time.Hour)
		},
		"it ended before its Prolog": func(c *hookedCluster) {
			j := c.start(7, "n1")
			j.State.Base, j.End = slurm.Cancelled, j.Start
		},
		"it waits": func(c *hookedCluster) { c.start(7, "").State.Base = slurm.Pending },
	} {
		t.Run(name, func(t *testing.T) {
			c := newHookedCluster(t)
			happens(c)
			for range 4 {
				c.list()
				c.report()
			}
			if got := c.tracker.Hooks.MissedPrologs(); len(got) != 0 {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestAJobThatEndedBetweenTwoListsIsJudged(t *testing.T) {
	c := newHookedCluster(t)
	j := c.start(7, "n1")
	j.State.Base, j.End = slurm.Completed, j.Start.Add(5*time.Second)
	c.list()
	c.report()
	c.report()
	if got := c.tracker.Hooks.MissedPrologs(); len(got) != 1 || got[0].Jobs != 1 {
		t.Errorf("%+v", got)
	}
}

func TestSubmissionsWithoutACallOfJobSubmitAreCounted(t *testing.T) {
	c := newHookedCluster(t)
	c.start(1, "n1")
	c.start(2, "n1").AdminComment = "JS1:other"
	c.start(3, "n1").Allocated = nil
	requeued := c.start(4, "n1")
	requeued.AdminComment, requeued.Restarts = "", 1
	ended := c.start(5, "n1")
	ended.AdminComment, ended.State.Base = "", slurm.Completed
	early := c.start(6, "n1")
	early.AdminComment, early.Submit = "", c.now.Add(-time.Hour)
	c.list()
	c.list()
	if with, without := c.tracker.Hooks.Submissions(); with != 1 || without != 1 {
		t.Errorf("%d with a token, %d without, want one each", with, without)
	}
}

// A job without a token, where others have one, is the workload of its script, which Slurm still has: in the
// list, at the question for a decision, and later; srun's has none.
func TestAJobWhoseSubmissionWasntHeardOfIsOfItsScriptsWorkload(t *testing.T) {
	const text = "#!/bin/sh\ntrain\n"
	script, none := SourceOf(0, ScriptHash(text), ""), SourceOf(0, "", "")
	for how, first := range map[string]func(*hookedCluster){
		"listed": (*hookedCluster).list,
		"asked for": func(c *hookedCluster) {
			for _, id := range []slurm.JobID{7, 8} { // 7 tells that there are tokens
				if job, err := c.tracker.resolve(t.Context(), id); err != nil ||
					id == 8 && job.Source != script {
					t.Errorf("job %d: %+v, %v", id, job, err)
				}
			}
		},
	} {
		c := newHookedCluster(t)
		asked := 0
		c.tracker.options.Script = func(_ context.Context, id slurm.JobID, most int) (string, error) {
			if asked++; id == 9 {
				return "", slurm.ErrNotFound
			}
			return text[:min(most, len(text))], nil
		}
		c.tracker.options.Resolve = func(_ context.Context, id slurm.JobID) (slurm.Job, error) {
			return c.jobs[slices.IndexFunc(c.jobs, func(j slurm.Job) bool { return j.ID == id })], nil
		}
		c.start(7, "n1")
		for id := slurm.JobID(8); id < 10; id++ {
			c.start(id, "n1").AdminComment = ""
		}
		first(c)
		for range 3 {
			c.list()
			if job := c.tracker.Get(8); !job.Scripted || job.Source != script {
				t.Errorf("%s: %+v", how, job)
			}
			if job := c.tracker.Get(9); job.Scripted || job.Source != none {
				t.Errorf("%s: without a script: %+v", how, job)
			}
		}
		if asked != 2 {
			t.Errorf("%s: Slurm was asked %d times for scripts of 2 jobs", how, asked)
		}
	}
}

// The first that the controller knows of submissions is that it was asked about some; Slurm may tell of the
// job that it wasn't asked about before it tells of the others, and of its changes while it looks for the
// script, and it may not find the time to answer.
func TestAScriptIsAskedForBeforeAJobWithATokenIsKnownAndUntilSlurmAnswers(t *testing.T) {
	const text = "#!/bin/sh\ntrain\n"
	script := SourceOf(0, ScriptHash(text), "")
	for name, one := range map[string]struct{ busy, asked int }{
		"at once":      {0, 1},
		"after a list": {1, 2},
		"never":        {100, 1 + maxScriptQuestions},
	} {
		c := newHookedCluster(t)
		c.tracker.Submitted("a token", script, false, c.now)
		job := c.start(8, "n1")
		job.AdminComment = ""
		asked := 0
		c.tracker.options.Script = func(context.Context, slurm.JobID, int) (string, error) {
			if asked++; asked <= one.busy {
				return "", errors.New("Resource temporarily unavailable")
			}
			job.Nice++
			c.tracker.Observe(c.jobs)
			return text, nil
		}
		c.tracker.options.Resolve = func(context.Context, slurm.JobID) (slurm.Job, error) { return *job, nil }
		if got, err := c.tracker.resolve(t.Context(), 8); err != nil || got.Scripted != (one.busy == 0) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		for range 6 {
			c.list()
		}
		got := c.tracker.Get(8)
		if wanted := one.busy < maxScriptQuestions; got.Scripted != wanted || wanted && got.Source != script {
			t.Errorf("%s: scripted %v", name, got.Scripted)
		}
		if asked != one.asked {
			t.Errorf("%s: Slurm was asked %d times, want %d", name, asked, one.asked)
		}
	}
}
