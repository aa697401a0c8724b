package control

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
)

// model is a version of a workload's model, ready to predict. It is immutable.
type model struct {
	version int64
	fitted  *dvfsmodel.Fitted
	shape   shape
	samples int
	created time.Time
}

// shape is what a stored model has beside its form. Clocks are the span in
// which there were samples.
type shape struct {
	BaseCore     dvfsmodel.MHz `json:"base_core_mhz"`
	BaseMem      dvfsmodel.MHz `json:"base_mem_mhz"`
	Coefficients []coefficient `json:"coefficients"`
	Margin       float64       `json:"time_margin"` // ratio of run time to prediction, less 1, that is seldom exceeded
	Prior        bool          `json:"prior"`       // what workloads have in common, after a few samples
	MinCore      dvfsmodel.MHz `json:"min_core_mhz"`
	MaxCore      dvfsmodel.MHz `json:"max_core_mhz"`
	MinMem       dvfsmodel.MHz `json:"min_mem_mhz"`
	MaxMem       dvfsmodel.MHz `json:"max_mem_mhz"`
	// Of the fit: distinct settings, and mean relative errors at settings left out; 0:
	// not known, as of versions from before they were kept.
	Settings   int     `json:"settings,omitempty"`
	TimeError  float64 `json:"time_error,omitempty"`
	PowerError float64 `json:"power_error,omitempty"`
}

type coefficient struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	StdErr float64 `json:"std_err"`
}

// String names the model in reasons.
func (m *model) String() string {
	kind := "model"
	if m.shape.Prior {
		kind = "pooled prior"
	}
	return fmt.Sprintf("%s version %d of %d runs", kind, m.version, m.samples)
}

// at is the model's prediction at a point. The point's clocks are normalised
// to the model's own base.
func (m *model) at(pt dvfsmodel.Point) dvfsmodel.Point {
	fc, fm := float64(pt.Core/m.shape.BaseCore), float64(pt.Mem/m.shape.BaseMem)
	s := dvfsmodel.Setting{V: dvfsmodel.VoltageFor(fc), Fc: fc, Fm: fm}
	pt.Time, pt.Power = m.fitted.Time(fc, fm), m.fitted.Power(s)
	pt.Energy = pt.Power.Over(pt.Time)
	return pt
}

// noFaster is the model's prediction at a point. Whatever curves through a few
// samples say, lower clocks make nothing faster than the standard ones.
func (m *model) noFaster(at dvfsmodel.Point, standard *dvfsmodel.Point) dvfsmodel.Point {
	pt := m.at(at)
	if pt.Core <= standard.Core && pt.Mem <= standard.Mem && pt.Time < standard.Time {
		pt.Time = standard.Time
		pt.Energy = pt.Power.Over(pt.Time)
	}
	return pt
}

// covers tells whether a prediction can be used: no guess is made about memory
// clocks beyond the measured ones.
func (m *model) covers(pt *dvfsmodel.Point) bool {
	return pt.Mem >= m.shape.MinMem && pt.Mem <= m.shape.MaxMem && m.positive(pt)
}

// maxEnergy is far above what any job takes; NaN and infinity aren't below it.
const maxEnergy = 1e18

// upper is the time that a run at a point takes at most. Below the measured
// clocks it is that of a run that follows the clocks altogether: nothing can be
// slowed down more by them.
func (m *model) upper(pt *dvfsmodel.Point, margin float64) float64 {
	edge := m.edge(pt)
	slower := float64(max(1, edge.Core/pt.Core) * max(1, edge.Mem/pt.Mem))
	return max(pt.Time, edge.Time*slower) * (1 + max(m.shape.Margin, margin))
}

// lower is the time that a run at a point takes at least.
func (m *model) lower(pt *dvfsmodel.Point, margin float64) float64 {
	edge := m.edge(pt)
	faster := float64(min(1, edge.Core/pt.Core) * min(1, edge.Mem/pt.Mem))
	return min(pt.Time, edge.Time*faster) / (1 + max(m.shape.Margin, margin))
}

// edge is the nearest point within the measured clocks.
func (m *model) edge(pt *dvfsmodel.Point) dvfsmodel.Point {
	s := &m.shape
	core := min(max(pt.Core, s.MinCore), s.MaxCore)
	mem := min(max(pt.Mem, s.MinMem), s.MaxMem)
	if core == pt.Core && mem == pt.Mem {
		return *pt
	}
	return m.at(dvfsmodel.Point{Core: core, Mem: mem})
}

// modelRecord is a model as it is stored.
func modelRecord(key record.WorkloadKey, m *model) (*record.Model, error) {
	text, err := json.Marshal(&m.shape)
	if err != nil {
		return nil, fmt.Errorf("model of workload %s: %w", key.Workload, err)
	}
	var covariance []float64
	for _, row := range m.fitted.Covariance {
		covariance = append(covariance, row...)
	}
	return &record.Model{
		WorkloadKey: key, Form: m.fitted.Form.String(), Coefficients: text, Covariance: covariance,
		Samples: m.samples, Created: m.created,
	}, nil
}

// fromModelRecord rebuilds a model.
func fromModelRecord(r *record.Model) (*model, error) {
	m := &model{version: r.Version, samples: r.Samples, created: r.Created}
	if err := json.Unmarshal(r.Coefficients, &m.shape); err != nil {
		return nil, fmt.Errorf("model %d of workload %s: %w", r.Version, r.Workload, err)
	}
	form, err := dvfsmodel.ParseForm(r.Form)
	if err == nil {
		m.fitted, err = dvfsmodel.NewFitted(form, m.shape.base(), m.shape.list())
	}
	if err != nil {
		return nil, fmt.Errorf("model %d of workload %s: %w", r.Version, r.Workload, err)
	}
	if s := &m.shape; !(s.TimeError >= 0) || !(s.PowerError >= 0) || s.Settings < 0 {
		return nil, fmt.Errorf("model %d of workload %s: its errors are impossible", r.Version, r.Workload)
	}
	m.fitted.Settings, m.fitted.TimeError, m.fitted.PowerError = m.shape.Settings, m.shape.TimeError, m.shape.PowerError
	if s := &m.shape; !(s.MinCore > 0) || !(s.MaxCore >= s.MinCore) || !(s.MinMem > 0) || !(s.MaxMem >= s.MinMem) || !(s.Margin >= 0) {
		return nil, fmt.Errorf("model %d of workload %s: its measured clocks or its margin are impossible", r.Version, r.Workload)
	}
	return m, nil
}

func (s *shape) base() dvfsmodel.Base { return dvfsmodel.Base{Core: s.BaseCore, Mem: s.BaseMem} }

func (s *shape) list() []dvfsmodel.Coefficient {
	list := make([]dvfsmodel.Coefficient, len(s.Coefficients))
	for i, c := range s.Coefficients {
		list[i] = dvfsmodel.Coefficient(c)
	}
	return list
}

// standing is how a workload's model fares.
type standing struct {
	model   *model        // nil: none is in use
	lessons []lesson      // by the last fit
	off     int           // runs in a row that the prediction missed
	right   int           // runs since it was made, or since the start, that it did not miss
	pinned  bool          // an administrator chose the version
	chosen  epdapi.Chosen // who did, or let fits replace it again; the zero one: nobody, or not known
	note    string        // why none is in use
	usage   float64       // part of their time at default clocks in which the last runs were at work, at least; 0: not known
}

// modelView is a standing at a moment.
type modelView struct {
	model   *model
	right   int
	note    string
	lessons []lesson
	usage   float64
}

func (v modelView) why(gpuModel string) string {
	if v.note != "" {
		return v.note
	}
	return "there is no model of this workload on " + gpuModel + " yet"
}

// models are the standings of all workloads.
type models struct {
	mu     sync.RWMutex
	byKey  map[record.WorkloadKey]*standing
	loaded map[string]bool // GPU models; nil until somebody asks
}

func (s *models) get(key record.WorkloadKey) modelView {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if found := s.byKey[key]; found != nil {
		return modelView{found.model, found.right, found.note, found.lessons, found.usage}
	}
	return modelView{}
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

// keys are the workloads that have a standing, in order.
func (s *models) keys() []record.WorkloadKey {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.SortedFunc(maps.Keys(s.byKey), compareKeys)
}

func compareKeys(a, b record.WorkloadKey) int {
	return cmp.Or(strings.Compare(a.Workload, b.Workload), strings.Compare(a.GPUModel, b.GPUModel))
}
