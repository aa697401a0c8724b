package config

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/spelling"
)

// Models is a set of models, at most one for each workload on each GPU model.
// It is immutable.
type Models struct {
	list      []Model
	index     map[modelKey]int
	workloads map[string]bool
}

func newModels(size int) *Models {
	return &Models{
		list: make([]Model, 0, size), index: make(map[modelKey]int, size), workloads: make(map[string]bool),
	}
}

// add adds a valid model, unless there is one with its key.
func (s *Models) add(m Model) bool {
	if _, twice := s.index[m.key()]; twice {
		return false
	}
	s.index[m.key()] = len(s.list)
	s.workloads[m.Workload] = true
	s.list = append(s.list, m)
	return true
}

type modelKey struct{ workload, gpuModel string }

func (m *Model) key() modelKey { return modelKey{m.Workload, spelling.Fold(m.GPUModel)} }

// NewModels makes a set of models after checking each of them.
func NewModels(list ...Model) (*Models, error) {
	set := newModels(len(list))
	for _, m := range list {
		if err := m.validate(); err != nil {
			return nil, fmt.Errorf("model of workload %s on %s: %w", quoteName(m.Workload),
				quoteName(m.GPUModel), err)
		}
		if !set.add(m) {
			return nil, fmt.Errorf("two models of workload %s on %s", quoteName(m.Workload),
				quoteName(m.GPUModel))
		}
	}
	return set, nil
}

// With are these models and others. A model that both have is an error that says
// where.
func (s *Models) With(others *Models) (*Models, error) {
	all := newModels(len(s.list) + len(others.list))
	for _, m := range slices.Concat(s.list, others.list) {
		if !all.add(m) {
			first, _ := all.Lookup(m.Workload, m.GPUModel)
			return nil, fmt.Errorf("%s: a model of workload %s on %s is already at %s", m.Pos,
				quoteName(m.Workload), quoteName(m.GPUModel), first.Pos)
		}
	}
	return all, nil
}

// ReadModels reads a file of [[model]] tables, such as `epplan model fit`
// writes. The error is a [FileError] unless the file can't be read at all.
func ReadModels(r io.Reader, name string) (*Models, error) {
	d, err := parse(r, name)
	if err != nil {
		return nil, err
	}
	set := newModels(0)
	model := field{key: "model"}
	model.read = func(d *document, path string, v any) {
		d.eachTable(path, v, func(at string, values map[string]any) { set.decode(d, at, values) })
	}
	d.readFields("", "", d.root, []field{model})
	if len(d.root) == 0 {
		d.faultAt("", "no model, want [[model]] tables")
	}
	if err := d.err(); err != nil {
		return nil, err
	}
	return set, nil
}

// All lists the models in the order of the file.
func (s *Models) All() []Model { return slices.Clone(s.list) }

// Workloads lists the workloads that have a model, ascending.
func (s *Models) Workloads() []string {
	return slices.Sorted(maps.Keys(s.workloads))
}

// Lookup finds the model of a workload on a GPU model, named as in its profile.
func (s *Models) Lookup(workload, gpuModel string) (*Model, bool) {
	i, ok := s.index[modelKey{workload, spelling.Fold(gpuModel)}]
	if !ok {
		return nil, false
	}
	return &s.list[i], true
}

// Check returns an [UnknownError] for a workload that has no model at all.
func (s *Models) Check(workload string) error {
	if s.workloads[workload] {
		return nil
	}
	return newUnknownError("workload", workload, s.Workloads())
}

// validate reports what a file of this model could not say, or what makes it
// useless.
func (m *Model) validate() error {
	switch {
	case !isLine(m.Workload) || !isLine(m.GPUModel):
		return fmt.Errorf("want names of 1 to %d printable bytes", maxText)
	case m.Source != "" && !isLine(m.Source):
		return errors.New("the source is no line of text")
	case m.Settings < 0 || !nonNegativeRange.contains(m.TimeMAPE) || !nonNegativeRange.contains(m.PowerMAPE):
		return fmt.Errorf("%d settings and errors %v and %v, want 0 or more", m.Settings,
			m.TimeMAPE, m.PowerMAPE)
	}
	if !positiveRange.contains(float64(m.Base.Core)) || !positiveRange.contains(float64(m.Base.Mem)) {
		return fmt.Errorf("base clocks %v/%v MHz, want %v", float64(m.Base.Core), float64(m.Base.Mem),
			positiveRange)
	}
	if isCapped := m.Form == dvfsmodel.CappedForm(); isCapped != positiveRange.contains(float64(m.Base.Cap)) ||
		isCapped != (len(m.Caps) > 0) {
		return fmt.Errorf("form %s, a base cap of %v W and %d caps, want caps with the form %s and only there",
			m.Form, float64(m.Base.Cap), len(m.Caps), dvfsmodel.CappedForm())
	}
	for _, c := range m.Coefficients {
		if !anyRange.contains(c.Value) || !nonNegativeRange.contains(c.StdErr) {
			return fmt.Errorf("coefficient %s is %v ± %v, want numbers up to 1e15", c.Name, c.Value, c.StdErr)
		}
	}
	if err := m.checkClocks(); err != nil {
		return err
	}
	_, err := m.Fitted()
	return err
}
