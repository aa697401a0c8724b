package learn

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
)

// standing is how a workload's model fares.
type standing struct {
	model   *Model        // nil: none is in use
	explore explore       // by the last fit
	misses  int           // runs in a row that the prediction missed
	missed  string        // the node of these, "" if it isn't one
	hits    int           // runs since it was made, or since the start, that it did not miss
	pinned  bool          // an administrator chose the version
	chosen  epdapi.Chosen // who did, or let fits replace it again; the zero one: nobody, or not known
	note    string        // why none is in use
	usage   float64       // as View has it
}

// View is what is known of a workload on a GPU model at a moment.
type View struct {
	Model *Model // nil: none is in use
	Hits  int    // runs since it was made, or since the start, that it did not miss
	Note  string // why none is in use; empty: that isn't known
	// Candidates are the settings at which most can be learnt, the most first. LimitCandidates are those of
	// clocks and power limits together: a limit of 0 is the one in force.
	Candidates, LimitCandidates []Candidate
	// Usage is the part of their time at default clocks in which the last runs were at
	// work, at least; 0: not known.
	Usage float64
	// Without are the models of the runs without those of a node other than the one that is asked for, each:
	// clocks are only chosen that all of these allow. Only is the node that all runs are of, if it is another
	// one.
	Without []*Model
	Only    string
}

// WhyNoModel says why there is no model.
func (v View) WhyNoModel(gpuModel string) string {
	if v.Note != "" {
		return v.Note
	}
	return "there is no model of this workload on " + gpuModel + " yet"
}

// AtDefault returns what the workload does at default clocks; false: no model says it.
func (v View) AtDefault() (dvfsmodel.Point, bool) {
	if v.Model == nil {
		return dvfsmodel.Point{}, false
	}
	pt := v.Model.At(v.Model.Base.Core, v.Model.Base.Mem)
	return pt, v.Model.Covers(&pt)
}

// models are the standings of all workloads.
type models struct {
	mu     sync.RWMutex
	byKey  map[record.WorkloadKey]*standing
	loaded map[string]bool // GPU models; nil until somebody asks
}

func (s *models) get(key record.WorkloadKey) View {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if st := s.byKey[key]; st != nil {
		return View{
			Model: st.model, Hits: st.hits, Note: st.note, Candidates: st.explore.clocks,
			LimitCandidates: st.explore.limits, Usage: st.usage,
		}
	}
	return View{}
}

// change changes a standing under the lock.
func (s *models) change(key record.WorkloadKey, f func(*standing)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.byKey[key]
	if found == nil {
		found = &standing{}
		s.byKey[key] = found
	}
	f(found)
}

func (s *models) inUse() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	n := 0
	for _, st := range s.byKey {
		if st.model != nil {
			n++
		}
	}
	return n
}

// keys returns the workloads that have a standing, in order.
func (s *models) keys() []record.WorkloadKey {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.SortedFunc(maps.Keys(s.byKey), record.WorkloadKey.Compare)
}

// gpuModels returns the GPU models that any workload has a standing on. There may
// be very many workloads and few GPU models, so that those are kept which there
// were when models were loaded: others come with decisions.
func (s *models) gpuModels() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loaded == nil {
		s.loaded = make(map[string]bool)
		for key := range s.byKey {
			s.loaded[key.GPUModel] = true
		}
	}
	return maps.Clone(s.loaded)
}

// standing returns how a workload's model fares, also of one that nobody knows: asking
// makes nothing known.
func (s *models) standing(key record.WorkloadKey) epdapi.ModelStatus {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := epdapi.ModelStatus{WorkloadKey: key}
	st := s.byKey[key]
	if st == nil {
		return out
	}
	out.Missed, out.Pinned, out.Note, out.Chosen = st.misses, st.pinned, st.note, st.chosen
	if m := st.model; m != nil {
		out.Version, out.Prior, out.Samples = m.Version, m.Prior, m.Samples
		out.Form, out.Created, out.Margin = m.Form.String(), m.Created, m.Margin
	}
	return out
}

// judge compares a run with its prediction. After enough misses in a row the
// model is taken out of use.
func (l *Learner) judge(ctx context.Context, key record.WorkloadKey, o *record.Outcome) {
	m := l.models.get(key).Model
	if m == nil || o.Node == m.Left {
		return
	}
	ran := []record.Outcome{*o}
	assignSiteClocks(l.options.GPU(key.GPUModel), ran)
	s, why := sampled(&ran[0], m.Base)
	if why != "" {
		return
	}
	hit := m.isHit(&s, l.options.Settings().TimeMargin)
	missed, alone := 0, false
	l.models.change(key, func(st *standing) {
		if st.model != m {
			return
		}
		if st.misses == 0 {
			st.missed = o.Node
		} else if st.missed != o.Node {
			st.missed = ""
		}
		if st.misses++; hit {
			st.misses = 0
			st.hits++
		}
		missed, alone = st.misses, st.missed != "" && m.hasRunsBeside(o.Node)
	})
	if missed >= missesInARow && !alone { // else that node's runs are left out, not the model
		l.retire(ctx, key, m, fmt.Sprintf("missed the last %d runs", missed))
	}
}

// retire takes a model out of use, one that an administrator chose too.
func (l *Learner) retire(ctx context.Context, key record.WorkloadKey, m *Model, why string) {
	found := false
	note := fmt.Sprintf("model version %d %s and isn't used", m.Version, why)
	l.models.change(key, func(st *standing) {
		if found = st.model == m; found {
			*st = standing{note: note}
		}
	})
	if !found {
		return
	}
	l.retired.Add(1)
	l.options.Log.Warn("a model isn't used any more", "why", why,
		"workload", key.Workload, "gpu_model", key.GPUModel, "version", m.Version)
	if err := l.options.Records.UseModel(ctx, key, 0, note); err != nil {
		l.options.Log.Error("a model can't be taken out of use in the store", "error", err)
	}
}

// Model returns what is known of a workload on a GPU model.
func (l *Learner) Model(key record.WorkloadKey) View { return l.models.get(key) }

// ModelStatus returns how a workload's model fares, also of one that nobody knows.
func (l *Learner) ModelStatus(key record.WorkloadKey) epdapi.ModelStatus {
	return l.models.standing(key)
}

// ModelStatuses returns how all workloads' models fare, in the order of their keys.
func (l *Learner) ModelStatuses() []epdapi.ModelStatus {
	keys := l.models.keys()
	all := make([]epdapi.ModelStatus, len(keys))
	for i, key := range keys {
		all[i] = l.models.standing(key)
	}
	return all
}

// GPUModels returns the GPU models on which there were models of workloads when they were
// loaded.
func (l *Learner) GPUModels() map[string]bool { return l.models.gpuModels() }

// Counts returns how many models are in use, and how many were made and taken out of use
// for their misses since the start.
func (l *Learner) Counts() (inUse int, fitted, retired int64) {
	return l.models.inUse(), l.fitted.Load(), l.retired.Load()
}
