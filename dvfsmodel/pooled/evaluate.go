package pooled

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
)

// LeftOutResult is how well a left-out workload was predicted from its probes, and
// what choosing by that costs. Errors and regrets are percentages.
type LeftOutResult struct {
	App string `json:"app"`
	// Probes are the settings that were measured, in order.
	Probes []dvfsmodel.Setting `json:"probes"`
	Chosen dvfsmodel.Setting   `json:"chosen"`
	Best   dvfsmodel.Setting   `json:"best"`
	// Regret is the measured energy at the chosen clocks above the least measured.
	Regret float64 `json:"regret"`
	// TimeMAPE and PowerMAPE are the mean absolute errors at settings that weren't
	// probed.
	TimeMAPE  Percent `json:"time_mape"`
	PowerMAPE Percent `json:"power_mape"`
	// Coverage is the part of the settings that weren't probed whose energy was
	// within the 90 % interval.
	Coverage Percent `json:"coverage"`
}

// Percent is what settings that weren't probed tell. It is NaN, null in JSON,
// where nothing can be judged: before the first probe times have no level, and
// after the last one nothing is left to predict.
type Percent float64

// MarshalJSON implements json.Marshaler.
func (p Percent) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(p)) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(p))
}

// Report is the evaluation of all workloads of a table. Errors and regrets are
// percentages.
type Report struct {
	Method     string          `json:"method"`
	Unit       string          `json:"unit"` // of errors and regrets: percent
	Probes     int             `json:"probes"`
	Settings   int             `json:"settings"`
	RegretMean float64         `json:"regret_mean"`
	RegretMax  float64         `json:"regret_max"`
	TimeMAPE   Percent         `json:"time_mape"`
	PowerMAPE  Percent         `json:"power_mape"`
	Coverage   Percent         `json:"coverage"`
	Workloads  []LeftOutResult `json:"workloads"`
}

// Method names how [Evaluate] predicts.
const Method = "pooled_prior_adaptive_probes"

// Evaluate leaves out each workload in turn, learns a prior from the others, and
// chooses clocks for it after each number of probes up to the given one, each
// where [Belief.NextProbe] says. Nothing of the workload is looked at but its probes.
// There is one report for each number of probes, from 0 on. All workloads must
// have the same settings.
func Evaluate(apps []dvfsmodel.AppSamples, probes int) ([]Report, error) {
	tables := make([][]dvfsmodel.Sample, len(apps))
	for i := range apps {
		tables[i] = apps[i].Samples
	}
	settings := allSettings(tables)
	if probes < 0 || probes > len(settings) {
		return nil, fmt.Errorf("%d probes, want 0 to %d: there are so many settings", probes, len(settings))
	}
	reports := make([]Report, probes+1)
	for n := range reports {
		reports[n] = Report{
			Method: Method, Unit: "percent", Probes: n, Settings: len(settings),
			Workloads: make([]LeftOutResult, 0, len(apps)),
		}
	}
	truths := make([][]dvfsmodel.Sample, len(apps))
	for j := range apps {
		var err error
		if truths[j], err = samplesInOrder(&apps[j], settings); err != nil {
			return nil, err
		}
	}
	for j, truth := range truths {
		prior, err := Learn(slices.Delete(slices.Clone(tables), j, j+1))
		if err != nil {
			return nil, fmt.Errorf("without application %s: %w", apps[j].App, err)
		}
		if len(prior.settings) != len(settings) {
			return nil, fmt.Errorf("application %s has settings that no other one has", apps[j].App)
		}
		t := leftOutTrial{
			belief: prior.NewBelief(), truth: truth, probed: make([]bool, len(truth)),
			probes: make([]dvfsmodel.Setting, 0, probes),
		}
		for n := range reports {
			if n > 0 {
				if err := t.probe(); err != nil {
					return nil, fmt.Errorf("application %s: %w", apps[j].App, err)
				}
			}
			o := t.result()
			o.App = apps[j].App
			reports[n].add(&o, float64(len(apps)))
		}
	}
	return reports, nil
}

func (r *Report) add(o *LeftOutResult, count float64) {
	r.Workloads = append(r.Workloads, *o)
	r.RegretMean += o.Regret / count
	r.RegretMax = max(r.RegretMax, o.Regret)
	r.TimeMAPE += o.TimeMAPE / Percent(count)
	r.PowerMAPE += o.PowerMAPE / Percent(count)
	r.Coverage += o.Coverage / Percent(count)
}

// samplesInOrder is a workload's samples, one for each setting.
func samplesInOrder(app *dvfsmodel.AppSamples, settings []dvfsmodel.Setting) ([]dvfsmodel.Sample, error) {
	list := make([]dvfsmodel.Sample, len(settings))
	for _, s := range app.Samples {
		i := slices.Index(settings, dvfsmodel.Setting{Core: s.Core, Mem: s.Mem})
		if list[i].Time != 0 {
			return nil, fmt.Errorf("application %s has two measurements at %g/%g MHz", app.App,
				float64(s.Core), float64(s.Mem))
		}
		list[i] = s
	}
	for i, s := range settings {
		if list[i].Time == 0 {
			return nil, fmt.Errorf("application %s has no measurement at %g/%g MHz, want all applications "+
				"at the same settings",
				app.App, float64(s.Core), float64(s.Mem))
		}
	}
	return list, nil
}

type leftOutTrial struct {
	belief *Belief
	truth  []dvfsmodel.Sample
	probed []bool
	probes []dvfsmodel.Setting
}

// probe measures one setting more.
func (t *leftOutTrial) probe() error {
	at := t.belief.NextProbe(func(i int) bool { return !t.probed[i] }, Noise{})
	t.probed[at] = true
	t.probes = append(t.probes, t.belief.settings[at])
	return t.belief.Observe(at, t.truth[at].Time, t.truth[at].Power, Noise{})
}

// result compares what is believed with the truth.
func (t *leftOutTrial) result() LeftOutResult {
	const percent = 100
	best, chosen := 0, t.belief.Best(nil)
	for i := range t.truth {
		if t.truth[i].Energy() < t.truth[best].Energy() {
			best = i
		}
	}
	o := LeftOutResult{
		Probes: slices.Clone(t.probes), Chosen: t.belief.settings[chosen],
		Best:   t.belief.settings[best],
		Regret: percent * (float64(t.truth[chosen].Energy()/t.truth[best].Energy()) - 1),
	}
	rest := Percent(len(t.truth) - len(t.probes))
	if len(t.probes) == 0 || rest == 0 {
		nothing := Percent(math.NaN())
		o.TimeMAPE, o.PowerMAPE, o.Coverage = nothing, nothing, nothing
		return o
	}
	for i := range t.truth {
		if t.probed[i] {
			continue
		}
		const ninety = 1.645
		p := t.belief.At(i)
		o.TimeMAPE += percent * Percent(math.Abs(p.Time/t.truth[i].Time-1)) / rest
		o.PowerMAPE += percent * Percent(math.Abs(float64(p.Power/t.truth[i].Power)-1)) / rest
		if miss := math.Log(p.Time * float64(p.Power) / float64(t.truth[i].Energy())); math.Abs(miss) <=
			ninety*p.EnergySD {
			o.Coverage += percent / rest
		}
	}
	return o
}
