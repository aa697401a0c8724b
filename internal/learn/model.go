package learn

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/choose"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
)

// Model is a version of a workload's model, ready to predict. It is immutable.
type Model struct {
	choose.Model

	// Capped is the model of runs under several power limits, of clocks and limits together; nil: there are
	// no such runs, or limits aren't chosen.
	Capped *choose.Capped

	// Without are the models of the runs without those of each node that weighs much; nil: there is none.
	Without map[string]*Model
	// Left is the node whose runs contradict those of the others, and are left out; "": there is none. Own is
	// the model of its own runs, if there is one.
	Left string
	Own  *Model

	Version int64
	Prior   bool // what workloads have in common, after a few samples
	Samples int
	Created time.Time
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

	Capped *storedCapped `json:"capped,omitempty"`

	Without map[string]*storedPart `json:"without,omitempty"` // by node
	Left    string                 `json:"left_out,omitempty"`
	Own     *storedPart            `json:"left_out_model,omitempty"`
}

// storedPart is a model of some of the runs.
type storedPart struct {
	Form         string          `json:"form"`
	Samples      int             `json:"samples"`
	Coefficients json.RawMessage `json:"model"`
}

// storePart returns a model of some of the runs as it is stored.
func storePart(m *Model) (*storedPart, error) {
	if m == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	r, err := modelRecord(record.WorkloadKey{}, m)
	if err != nil {
		return nil, err
	}
	return &storedPart{r.Form, r.Samples, r.Coefficients}, nil
}

// part rebuilds one; nil where that isn't possible: clocks aren't chosen by it then.
func (p *storedPart) part(of *record.Model) *Model {
	if p == nil {
		return nil
	}
	m, err := parseModel(&record.Model{Form: p.Form, Coefficients: p.Coefficients})
	if err != nil {
		return nil
	}
	m.Version, m.Samples, m.Created = of.Version, p.Samples, of.Created
	return m
}

type coefficient struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	StdErr float64 `json:"std_err"`
}

// String names the model in reasons.
func (m *Model) String() string {
	kind := "model"
	if m.Prior {
		kind = "pooled prior"
	}
	return fmt.Sprintf("%s version %d of %d runs", kind, m.Version, m.Samples)
}

// modelRecord returns a model as it is stored.
func modelRecord(key record.WorkloadKey, m *Model) (*record.Model, error) {
	stored := storedModel{
		BaseCore: m.Base.Core, BaseMem: m.Base.Mem, Margin: m.Margin, Prior: m.Prior,
		MinCore: m.Low.Core, MaxCore: m.High.Core, MinMem: m.Low.Mem, MaxMem: m.High.Mem,
		Settings: m.Settings, TimeError: m.TimeError, PowerError: m.PowerError,
		Capped: storeCapped(m.Capped),
	}
	for _, c := range m.Coefficients() {
		stored.Coefficients = append(stored.Coefficients, coefficient(c))
	}
	stored.Left = m.Left
	own, err := storePart(m.Own)
	stored.Own = own
	for node, without := range m.Without {
		if stored.Without == nil {
			stored.Without = make(map[string]*storedPart)
		}
		part, wrong := storePart(without)
		stored.Without[node], err = part, errors.Join(err, wrong)
	}
	if err != nil {
		return nil, err
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
		Samples: m.Samples, Created: m.Created,
	}, nil
}

// fromModelRecord rebuilds a model.
func fromModelRecord(r *record.Model) (*Model, error) {
	m, err := parseModel(r)
	if err != nil {
		return nil, fmt.Errorf("model %d of workload %s: %w", r.Version, r.Workload, err)
	}
	m.Version, m.Samples, m.Created = r.Version, r.Samples, r.Created
	return m, nil
}

func parseModel(r *record.Model) (*Model, error) {
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
	fitted, err := dvfsmodel.NewFitted(form, dvfsmodel.Setting{Core: s.BaseCore, Mem: s.BaseMem}, list)
	if err != nil {
		return nil, err
	}
	if !(s.TimeError >= 0) || !(s.PowerError >= 0) || s.Settings < 0 {
		return nil, errors.New("its errors are impossible")
	}
	if !(s.MinCore > 0) || !(s.MaxCore >= s.MinCore) || !(s.MinMem > 0) || !(s.MaxMem >= s.MinMem) ||
		!(s.Margin >= 0) {
		return nil, errors.New("its measured clocks or its margin are impossible")
	}
	fitted.Settings, fitted.TimeError, fitted.PowerError = s.Settings, s.TimeError, s.PowerError
	m := &Model{Prior: s.Prior, Capped: s.Capped.model(), Model: choose.Model{
		Fitted: fitted, Margin: s.Margin,
		Low:  dvfsmodel.Setting{Core: s.MinCore, Mem: s.MinMem},
		High: dvfsmodel.Setting{Core: s.MaxCore, Mem: s.MaxMem},
	}, Left: s.Left, Own: s.Own.part(r)}
	for node, without := range s.Without {
		if m.Without == nil {
			m.Without = make(map[string]*Model)
		}
		m.Without[node] = without.part(r)
	}
	return m, nil
}

// Summary returns what is shown of a model.
func (m *Model) Summary() *epdapi.Model {
	return &epdapi.Model{
		Version: m.Version, Prior: m.Prior, Samples: m.Samples, Margin: m.Margin,
		MinCore: m.Low.Core, MaxCore: m.High.Core,
	}
}
