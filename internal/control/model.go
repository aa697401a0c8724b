package control

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/choose"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
)

// model is a version of a workload's model, ready to predict. It is immutable.
type model struct {
	choose.Model

	version int64
	prior   bool // what workloads have in common, after a few samples
	samples int
	created time.Time
}

// storedModel is what a stored model has beside its form.
type storedModel struct {
	BaseCore     dvfsmodel.MHz `json:"base_core_mhz"`
	BaseMem      dvfsmodel.MHz `json:"base_mem_mhz"`
	Coefficients []coefficient `json:"coefficients"`
	Margin       float64       `json:"time_margin"`
	Prior        bool          `json:"prior"`
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
	if m.prior {
		kind = "pooled prior"
	}
	return fmt.Sprintf("%s version %d of %d runs", kind, m.version, m.samples)
}

// modelRecord is a model as it is stored.
func modelRecord(key record.WorkloadKey, m *model) (*record.Model, error) {
	stored := storedModel{
		BaseCore: m.Base.Core, BaseMem: m.Base.Mem, Margin: m.Margin, Prior: m.prior,
		MinCore: m.Low.Core, MaxCore: m.High.Core, MinMem: m.Low.Mem, MaxMem: m.High.Mem,
		Settings: m.Settings, TimeError: m.TimeError, PowerError: m.PowerError,
	}
	for _, c := range m.Coefficients() {
		stored.Coefficients = append(stored.Coefficients, coefficient(c))
	}
	text, err := json.Marshal(&stored)
	if err != nil {
		return nil, fmt.Errorf("model of workload %s: %w", key.Workload, err)
	}
	var covariance []float64
	for _, row := range m.Covariance {
		covariance = append(covariance, row...)
	}
	return &record.Model{
		WorkloadKey: key, Form: m.Form.String(), Coefficients: text, Covariance: covariance,
		Samples: m.samples, Created: m.created,
	}, nil
}

// fromModelRecord rebuilds a model.
func fromModelRecord(r *record.Model) (*model, error) {
	m, err := parseModel(r)
	if err != nil {
		return nil, fmt.Errorf("model %d of workload %s: %w", r.Version, r.Workload, err)
	}
	m.version, m.samples, m.created = r.Version, r.Samples, r.Created
	return m, nil
}

func parseModel(r *record.Model) (*model, error) {
	var s storedModel
	if err := json.Unmarshal(r.Coefficients, &s); err != nil {
		return nil, err
	}
	form, err := dvfsmodel.ParseForm(r.Form)
	if err != nil {
		return nil, err
	}
	list := make([]dvfsmodel.Coefficient, len(s.Coefficients))
	for i, c := range s.Coefficients {
		list[i] = dvfsmodel.Coefficient(c)
	}
	fitted, err := dvfsmodel.NewFitted(form, dvfsmodel.Base{Core: s.BaseCore, Mem: s.BaseMem}, list)
	if err != nil {
		return nil, err
	}
	if !(s.TimeError >= 0) || !(s.PowerError >= 0) || s.Settings < 0 {
		return nil, errors.New("its errors are impossible")
	}
	if !(s.MinCore > 0) || !(s.MaxCore >= s.MinCore) || !(s.MinMem > 0) || !(s.MaxMem >= s.MinMem) || !(s.Margin >= 0) {
		return nil, errors.New("its measured clocks or its margin are impossible")
	}
	fitted.Settings, fitted.TimeError, fitted.PowerError = s.Settings, s.TimeError, s.PowerError
	return &model{prior: s.Prior, Model: choose.Model{
		Fitted: fitted, Margin: s.Margin,
		Low: dvfsmodel.ClockPair{Core: s.MinCore, Mem: s.MinMem}, High: dvfsmodel.ClockPair{Core: s.MaxCore, Mem: s.MaxMem},
	}}, nil
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
