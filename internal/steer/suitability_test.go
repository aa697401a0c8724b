package steer_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/epplan/epplan/internal/colocate"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// sharing returns a cluster of three nodes with shared GPUs and one without, on which
// one job for a part of a GPU waits and ranks are as a map says.
func sharing(ranks map[string]int) *world {
	w := newWorld()
	w.settings.Live.Sharing.Weights = true
	w.settings.Shared = func(c *colocate.ClusterState, j *slurm.Job) colocate.Order {
		o := colocate.Order{Job: j.ID, Nodes: []colocate.Node{}}
		for i := range c.Nodes {
			if rank, ok := ranks[c.Nodes[i].Name]; ok {
				o.Nodes = append(o.Nodes, colocate.Node{
					Name: c.Nodes[i].Name, Rank: rank, Fits: rank < 2, Why: "too hot",
					Beside: []slurm.JobID{3},
				})
			}
		}
		return o
	}
	for _, name := range []string{"n1", "n2", "n3"} {
		n := w.node(name, "v100", "gpu")
		n.Weight = 10
		n.Gres = append(n.Gres, slurm.Gres{Name: "shard", Count: 16})
	}
	w.node("whole", "v100", "gpu").Weight = 10
	w.job(1, 10, 100, "").TRESPerNode = "gres:shard:1"
	return w
}

// weight returns the weights of the nodes in the order of their names.
func (w *world) weight() [4]uint32 {
	return [4]uint32{
		w.nodes["n1"].Weight, w.nodes["n2"].Weight, w.nodes["n3"].Weight, w.nodes["whole"].Weight,
	}
}

func TestNodesWithSharedGPUsGetWeightsByHowTheySuitTheNextJob(t *testing.T) {
	ranks := map[string]int{"n1": 1, "n2": 0, "n3": 2}
	w := sharing(ranks)
	s := w.open(t)
	if r := step(t, s); r.Set != 2 || w.weight() != [4]uint32{11, 10, 12, 10} {
		t.Fatalf("%+v: %v", r, w.weight())
	}
	if st := s.Status(); st.Weights != 2 || st.Shared == nil || st.Shared.Job != 1 ||
		len(st.Shared.Nodes) != 3 {
		t.Errorf("%+v", st)
	}
	w.nodes["n1"].Weight, w.nodes["n3"].Weight = 10, 77 // scontrol reconfigure; an administrator
	if r := step(t, s); r.Set != 1 || w.weight() != [4]uint32{11, 10, 77, 10} {
		t.Errorf("%+v: %v", r, w.weight())
	}
	w.nodes["n3"].Weight = 10
	ranks["n1"], ranks["n2"], ranks["n3"] = 0, 1, 0 // other jobs run now
	if r := step(t, s); r.Set != 1 || r.Undone != 1 || w.weight() != [4]uint32{10, 11, 10, 10} {
		t.Errorf("%+v: %v", r, w.weight())
	}
	delete(w.jobs, 1)
	if r := step(t, s); r.Undone != 1 || w.weight() != [4]uint32{10, 10, 10, 10} || s.Status().Shared != nil {
		t.Errorf("no such job waits: %+v: %v", r, w.weight())
	}
}

func TestNoWeightMovesForJobsThatShareNothingOrAreNotToBeTouched(t *testing.T) {
	for name, change := range map[string]func(*world){
		"a whole GPU":   func(w *world) { w.jobs[1].TRESPerNode = "gres:gpu:1" },
		"no GPU":        func(w *world) { w.jobs[1].TRESPerNode = "" },
		"opted out":     func(w *world) { w.jobs[1].Comment = "epplan:off" },
		"held":          func(w *world) { w.jobs[1].Priority = 0 },
		"not yet":       func(w *world) { w.jobs[1].Reason = "Dependency" },
		"it runs":       func(w *world) { w.jobs[1].State.Base = slurm.Running },
		"observed":      func(w *world) { w.settings.Live.Modes = map[string]live.Mode{"gpu": live.Observe} },
		"not asked for": func(w *world) { w.settings.Live.Sharing.Weights = false },
		"nobody knows":  func(w *world) { w.settings.Shared = nil },
		"an unknown job": func(w *world) {
			w.settings.Shared = func(_ *colocate.ClusterState, j *slurm.Job) colocate.Order {
				return colocate.Order{Job: j.ID, Note: "?"}
			}
		},
		"a stranger before": func(w *world) { w.job(2, 11, 200, "epplan:off").TRESPerNode = "gres:shard:1" },
	} {
		w := sharing(map[string]int{"n1": 1, "n2": 0, "n3": 2})
		change(w)
		s := w.open(t)
		if r := step(t, s); r.Set != 0 || w.weight() != [4]uint32{10, 10, 10, 10} {
			t.Errorf("%s: %+v, %v", name, r, w.weight())
		}
	}
}

func TestAJobThatSlurmCannotStartYetDoesNotHoldUpTheOrderForTheNext(t *testing.T) {
	for _, reason := range []string{
		"QOSMaxGRESPerUser", "QOSGrpCpuLimit", "QOSMaxJobsPerUserLimit", "AssocGrpGRES", "AssocMaxJobsLimit",
		"AssocGrpCPUMinutesLimit",
		"MaxGRESPerAccount", "AssociationJobLimit", "JobArrayTaskLimit", "Licenses", "Reservation",
		"ReqNodeNotAvail", "PartitionDown",
		"PartitionInactive", "JobHeldUser", "JobHeldAdmin", "JobHoldMaxRequeue", "Dependency",
		"DependencyNeverSatisfied", "BeginTime",
		"BurstBufferStageIn", "InvalidQOS", "AccountNotAllowed", "PartitionTimeLimit", "BadConstraints",
		"a reason of a later Slurm",
	} {
		ahead(t, reason, 1)
	}
	// It may be over in a moment.
	for _, reason := range []string{"QOSMaxGRESPerUser", "PartitionDown", "Licenses"} {
		w := sharing(map[string]int{"n1": 1, "n2": 0, "n3": 2})
		w.jobs[1].Reason = reason
		w.job(2, 10, 50, "").TRESPerNode = "gres:shard:1"
		w.jobs[2].Reason = reason
		w.ordersFor(t, 1, reason+", of all")
	}
	for _, reason := range []string{"", "None", "Priority", "Resources", "SchedDefer"} {
		ahead(t, reason, 2)
	}
}

// ahead checks for which job nodes are ordered where job 2, which waits for a
// reason, is ahead of job 1.
func ahead(t *testing.T, reason string, want slurm.JobID) {
	t.Helper()
	w := sharing(map[string]int{"n1": 1, "n2": 0, "n3": 2})
	w.job(2, 11, 200, "").TRESPerNode = "gres:shard:1"
	w.jobs[2].Reason = reason
	w.ordersFor(t, want, reason)
}

// ordersFor checks for which job the next step orders nodes.
func (w *world) ordersFor(t *testing.T, want slurm.JobID, what string) {
	t.Helper()
	s := w.open(t)
	if step(t, s); s.Status().Shared == nil || s.Status().Shared.Job != want {
		t.Errorf("%s: the order is for %+v, want job %d", what, s.Status().Shared, want)
	}
}

func TestTheOrderOfNodesIsAdvisedInAdviseMode(t *testing.T) {
	w := sharing(map[string]int{"n1": 1, "n2": 0, "n3": 2})
	w.settings.Live.Mode = live.Advise
	s := w.open(t)
	r := step(t, s)
	st := s.Status()
	if r.Set != 0 || len(st.Advice) != 2 ||
		st.Advice[0].Text !=
			"weight 11 instead of 10: job 1 fits beside what runs there: correlation 0.00, 0 W more" ||
		!strings.HasSuffix(st.Advice[1].Text, "job 1 doesn't fit beside what runs there: too hot") {
		t.Errorf("%+v, %+v", r, st.Advice)
	}
}

func TestTheOrderForSharedGPUsCountsBeforeThatOfFrugalNodes(t *testing.T) {
	w := sharing(map[string]int{"n1": 1, "n2": 0})
	w.settings.Live.Weights = true
	for _, name := range []string{"n1", "n2", "n3", "whole"} {
		w.nodes[name].Gres[0].Type = "a100"
	}
	w.node("thrifty", "t4", "gpu")
	s := w.open(t)
	if step(t, s); w.weight() != [4]uint32{11, 10, 11, 11} {
		t.Errorf("%v", w.weight())
	}
}

func TestWeightsOfTheMomentAreTakenBackWhenTheSteererEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := sharing(map[string]int{"n1": 1, "n2": 0, "n3": 2})
		w.job(2, 10, 90, deadline(time.Hour)) // goes before job 1
		s := w.open(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			s.Run(ctx, time.Minute)
			close(done)
		}()
		synctest.Wait()
		if w.weight() != [4]uint32{11, 10, 12, 10} || w.jobs[1].Nice == 0 {
			t.Errorf("%v, nice %d", w.weight(), w.jobs[1].Nice)
		}
		cancel()
		<-done
		if w.weight() != [4]uint32{10, 10, 10, 10} || w.jobs[1].Nice == 0 {
			t.Errorf("at the end: %v, nice %d", w.weight(), w.jobs[1].Nice)
		}
	})
	synctest.Test(t, func(t *testing.T) { // what frugality says stays
		w := sharing(nil)
		w.settings.Live.Weights = true
		w.node("a1", "a100", "gpu")
		s := w.open(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		step(t, s)
		s.Run(ctx, time.Minute)
		if w.nodes["a1"].Weight != 2 {
			t.Errorf("weight %d", w.nodes["a1"].Weight)
		}
	})
}

// A crash at any change leaves nothing that the next start doesn't know of.
func TestWeightsOfTheMomentSurviveNoCrash(t *testing.T) {
	for crash := 1; crash <= 2; crash++ {
		for _, after := range []bool{false, true} {
			w := sharing(map[string]int{"n1": 1, "n2": 0, "n3": 2})
			w.crash, w.after = crash, after
			func() {
				defer func() { _ = recover() }()
				_, _ = w.open(t).Step(t.Context())
				t.Error("it didn't end")
			}()
			w.crash = 0
			delete(w.jobs, 1)
			s := w.open(t)
			for range 3 {
				step(t, s)
			}
			if w.weight() != [4]uint32{10, 10, 10, 10} {
				t.Errorf("crash at %d, %v: %v", crash, after, w.weight())
			}
		}
	}
}
