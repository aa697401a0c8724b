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
	// Regret is the measured energy at the chosen setting above the least measured.
	Regret float64 `json:"regret"`
	// TimeMAPE and PowerMAPE are the mean absolute errors at settings that weren't
	// probed.
	TimeMAPE  Percent `json:"time_mape"`
	PowerMAPE Percent `json:"power_mape"`
	// Coverage is the part of the settings that weren't probed whose energy was
	// within the 90 % interval.
	Coverage Percent `json:"coverage"`
	// Violations is 1 where the choice is more than [Tolerance] slower than the slowdown that is
	// allowed, of all workloads the part of them. nil: none is asked for.
	Violations *float64 `json:"violations,omitempty"`
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

// Evaluation holds the evaluation of all workloads of a table. Errors and regrets are
// percentages.
type Evaluation struct {
	Method     string          `json:"method"`
	Unit       string          `json:"unit"` // of errors and regrets: percent
	Probes     int             `json:"probes"`
	Settings   int             `json:"settings"`
	RegretMean float64         `json:"regret_mean"`
	RegretMax  float64         `json:"regret_max"`
	TimeMAPE   Percent         `json:"time_mape"`
	PowerMAPE  Percent         `json:"power_mape"`
	Coverage   Percent         `json:"coverage"`
	Violations *float64        `json:"violations,omitempty"`
	Workloads  []LeftOutResult `json:"workloads"`
}

// Method names how [Evaluate] predicts.
const Method = "pooled_prior_adaptive_probes"

// EvaluateOptions adjust [EvaluateWith].
type EvaluateOptions struct {
	// Slowdown is how much slower than the fastest setting a choice may be, as a fraction; +Inf: as slow
	// as it likes.
	Slowdown float64
	Base     dvfsmodel.Setting // default clocks; 0: as [FillSettings] has it
}

// Tolerance is how far a choice may be beyond the allowed slowdown before it counts as a violation:
// one per cent of the fastest time, what measurements of one setting differ by.
const Tolerance = 0.01

// Evaluate leaves out each workload in turn, learns a prior from the others, and
// chooses clocks for it after each number of probes up to the given one, each
// where [Belief.NextProbe] says. Nothing of the workload is looked at but its probes.
// There is one report for each number of probes, from 0 on.
func Evaluate(apps []dvfsmodel.AppSamples, probes int) ([]Evaluation, error) {
	return EvaluateWith(apps, probes, &EvaluateOptions{Slowdown: math.Inf(1)})
}

// EvaluateWith is [Evaluate] with options. A workload is probed and chosen for at the settings at
// which it was measured; one with fewer of them than probes is measured everywhere.
func EvaluateWith(apps []dvfsmodel.AppSamples, probes int, opts *EvaluateOptions) ([]Evaluation, error) {
	resolved := FillSettings(apps, opts.Base)
	tables := make([][]dvfsmodel.Sample, len(apps))
	for i := range apps {
		tables[i] = resolved[i].Samples
	}
	settings := allCapSettings(tables)
	if probes < 0 || probes > len(settings) {
		return nil, fmt.Errorf("%d probes, want 0 to %d: there are so many settings", probes, len(settings))
	}
	reports := make([]Evaluation, probes+1)
	for n := range reports {
		reports[n] = Evaluation{
			Method: Method, Unit: "percent", Probes: n, Settings: len(settings),
			Workloads: make([]LeftOutResult, 0, len(apps)),
		}
	}
	truths := make([][]dvfsmodel.Sample, len(apps))
	for j := range apps {
		var err error
		if truths[j], err = samplesInOrder(&resolved[j], settings); err != nil {
			return nil, err
		}
	}
	dense := isDense(settings)
	for j, truth := range truths {
		belief, err := learnBelief(slices.Delete(slices.Clone(tables), j, j+1), settings)
		if err != nil {
			return nil, fmt.Errorf("without application %s: %w", apps[j].App, err)
		}
		t := leftOutTrial{
			Belief: belief, settings: settings, truth: truth, slowdown: opts.Slowdown,
			dense: dense, probed: make([]bool, len(truth)), probes: make([]dvfsmodel.Setting, 0, probes),
		}
		for n := range reports {
			if n > 0 && n <= len(tables[j]) {
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

func (r *Evaluation) add(o *LeftOutResult, count float64) {
	r.Workloads = append(r.Workloads, *o)
	r.RegretMean += o.Regret / count
	r.RegretMax = max(r.RegretMax, o.Regret)
	r.TimeMAPE += o.TimeMAPE / Percent(count)
	r.PowerMAPE += o.PowerMAPE / Percent(count)
	r.Coverage += o.Coverage / Percent(count)
	if o.Violations != nil {
		if r.Violations == nil {
			r.Violations = new(float64)
		}
		*r.Violations += *o.Violations / count
	}
}

// samplesInOrder returns a workload's samples, one for each setting; of time 0 where it wasn't measured.
func samplesInOrder(
	app *dvfsmodel.AppSamples, settings []dvfsmodel.Setting,
) ([]dvfsmodel.Sample, error) {
	if len(app.Samples) == 0 {
		return nil, fmt.Errorf("application %s has no measurement", app.App)
	}
	list := make([]dvfsmodel.Sample, len(settings))
	for _, s := range app.Samples {
		list[slices.Index(settings, s.At())] = s
	}
	return list, nil
}

type leftOutTrial struct {
	*Belief
	settings []dvfsmodel.Setting
	truth    []dvfsmodel.Sample // of time 0 where there is none
	slowdown float64
	dense    bool
	probed   []bool
	probes   []dvfsmodel.Setting
}

func (t *leftOutTrial) measured(i int) bool { return t.truth[i].Time > 0 }

// highest returns the last measured setting: the one with the highest cap and clocks.
func (t *leftOutTrial) highest() int {
	for i := range slices.Backward(t.truth) {
		if t.measured(i) {
			return i
		}
	}
	return -1
}

// probe measures one setting more: where most is to be learnt. If runs may be only so much slower than at
// the highest clocks, those come first.
func (t *leftOutTrial) probe() error {
	allowed := func(i int) bool { return t.measured(i) && !t.probed[i] }
	at := -1
	if len(t.probes) == 0 && !math.IsInf(t.slowdown, 1) {
		at = t.highest()
	}
	if at < 0 && t.dense {
		at = t.NextProbe(func(i int) bool {
			return allowed(i) && !slices.ContainsFunc(t.probes, func(p dvfsmodel.Setting) bool {
				return distance(&p, &t.settings[i]) < probesApart
			})
		}, Noise{})
	}
	if at < 0 {
		at = t.NextProbe(allowed, Noise{})
	}
	t.probed[at] = true
	t.probes = append(t.probes, t.settings[at])
	return t.Observe(at, t.truth[at].Time, t.truth[at].Power, Noise{})
}

// choose returns the setting that is chosen, and the best measured one, of those that are fast enough:
// by what is believed, and as measured.
func (t *leftOutTrial) choose() (chosen, best int, fastest float64) {
	fastest = math.Inf(1)
	for i := range t.truth {
		if t.measured(i) {
			fastest = min(fastest, t.truth[i].Time)
		}
	}
	chosen = t.BestWithin(t.slowdown, t.measured)
	best = -1
	for i := range t.truth {
		if t.measured(i) && t.truth[i].Time <= fastest*(1+t.slowdown) &&
			(best < 0 || t.truth[i].Energy() < t.truth[best].Energy()) {
			best = i
		}
	}
	return chosen, best, fastest
}

// result compares what is believed with the truth. What a choice saves that is too slow is no
// regret below 0.
func (t *leftOutTrial) result() LeftOutResult {
	const percent = 100
	chosen, best, fastest := t.choose()
	o := LeftOutResult{
		Probes: slices.Clone(
			t.probes,
		),
		Chosen: zeroUnknownClocks(t.settings[chosen]),
		Best:   zeroUnknownClocks(t.settings[best]),
		Regret: max(0, percent*(float64(t.truth[chosen].Energy()/t.truth[best].Energy())-1)),
	}
	for i, p := range o.Probes {
		o.Probes[i] = zeroUnknownClocks(p)
	}
	if !math.IsInf(t.slowdown, 1) {
		slow := 0.0
		if t.truth[chosen].Time > fastest*(1+t.slowdown+Tolerance) {
			slow = 1
		}
		o.Violations = &slow
	}
	rest := Percent(-len(t.probes))
	for i := range t.truth {
		if t.measured(i) {
			rest++
		}
	}
	if len(t.probes) == 0 || rest == 0 {
		nothing := Percent(math.NaN())
		o.TimeMAPE, o.PowerMAPE, o.Coverage = nothing, nothing, nothing
		return o
	}
	for i := range t.truth {
		if t.probed[i] || !t.measured(i) {
			continue
		}
		const ninety = 1.645
		p := t.At(i)
		o.TimeMAPE += percent * Percent(math.Abs(p.Time/t.truth[i].Time-1)) / rest
		o.PowerMAPE += percent * Percent(math.Abs(float64(p.Power/t.truth[i].Power)-1)) / rest
		if miss := math.Log(p.Time * float64(p.Power) / float64(t.truth[i].Energy())); math.Abs(miss) <=
			ninety*p.EnergySD {
			o.Coverage += percent / rest
		}
	}
	return o
}
