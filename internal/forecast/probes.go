package forecast

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/predict"
	"github.com/epplan/epplan/internal/predict/probe"
	words "github.com/epplan/epplan/internal/predict/source"
	"github.com/epplan/epplan/internal/store/record"
)

// embedScript is how many bytes of a script are looked at: a submission waits, and a
// thousand may be queued.
const embedScript = 16 << 10

// scriptWork is a script that was submitted, or code to ask an embedding server about.
type scriptWork struct {
	source    string
	script    string
	code      []float32
	digest    []byte
	text      string
	announced *announced
}

// KeepScript has what a submitted script looks like kept, as far as predictions look,
// with its code's features if the user doesn't mind.
func (f *Forecaster) KeepScript(j *Job, code bool) {
	w := &scriptWork{source: j.Source, script: strings.Clone(j.Script[:min(len(j.Script), embedScript)])}
	if code {
		w.code, w.digest = f.codes.get(j.Source, f.options.Clock(), true)
	}
	if w.script == "" && w.code == nil {
		return
	}
	f.enqueue(work{script: w})
}

// keepFeatures stores what a script looks like, and asks an embedding server.
func (f *Forecaster) keepFeatures(ctx context.Context, w *scriptWork) {
	if w.text != "" {
		defer f.codes.end(w.announced.uid)
		f.askServers(ctx, w)
		return
	}
	features := &record.Features{
		Cluster: f.options.Cluster, Source: w.source, Code: w.code, Digest: w.digest, Seen: f.options.Clock(),
	}
	if w.script != "" {
		features.Script = toFloat32(words.Embed(words.Read(w.script)))
	}
	if err := f.options.Records.PutFeatures(ctx, features); err != nil && ctx.Err() == nil {
		f.options.Log.Warn("features of a script can't be stored", "error", err)
	}
}

func toFloat32(v []float64) []float32 {
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = float32(x)
	}
	return out
}

func toFloat64(v []float32) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return out
}

// probes estimate jobs from what their scripts and their code look like.
type probes struct{ script, code *fittedProbe }

// fittedProbe is fitted to features of one kind.
type fittedProbe struct {
	width        int
	time, energy probe.Probe // energy in kWh; nil: too few are known
	distances    *probe.Distances
	set          *probe.Set
	sources      []string // by place in the set
}

const (
	maxProbed = 400 // scripts that probes are fitted to, the latest ones
	minProbed = 12
)

// fitProbes fits probes to the latest scripts and what their runs took.
func (f *Forecaster) fitProbes(ctx context.Context, ended []record.EndedJob, version *trainedVersion) error {
	all, err := f.options.Records.Features(ctx, f.options.Cluster, maxProbed)
	if err != nil {
		return err
	}
	took := make(map[string]*record.EndedJob, len(all)) // the last run
	for i := range ended {
		if e := &ended[i]; e.Completed && e.ScriptHash != "" {
			took[e.ScriptHash] = e
		}
	}
	p := &probes{}
	p.script, version.Scripts, err = fitProbe(ctx, all, took,
		func(f *record.Features) []float32 { return f.Script })
	if err == nil {
		p.code, version.Codes, err = fitProbe(ctx, all, took,
			func(f *record.Features) []float32 { return f.Code })
	}
	if err != nil {
		return err
	}
	f.probes.Store(p)
	return nil
}

// fitProbe fits to features of the length that most of them have; nil: there are too
// few.
func fitProbe(
	ctx context.Context, all []record.Features, took map[string]*record.EndedJob,
	of func(*record.Features) []float32,
) (*fittedProbe, int, error) {
	width := usualWidth(all, of)
	times, energies := &probe.Set{}, &probe.Set{}
	var sources []string
	if width == words.Dimensions {
		times.Style, energies.Style = words.Style, words.Style
	}
	for i := range all {
		v, e := of(&all[i]), took[all[i].Source]
		if e == nil || len(v) != width || width == 0 {
			continue
		}
		truths := actualValues(e)
		if t := truths[predict.Time]; t > 0 && !math.IsInf(t, 1) {
			sources = append(sources, all[i].Source)
		}
		sets := map[predict.Target]*probe.Set{predict.Time: times, predict.Energy: energies}
		for target, set := range sets {
			if truth := truths[target]; truth > 0 && !math.IsInf(truth, 1) {
				set.Embeddings, set.Values = append(set.Embeddings, toFloat64(v)), append(set.Values, truth)
			}
		}
	}
	n := len(times.Values)
	if n < minProbed {
		return nil, n, nil
	}
	p := &fittedProbe{width: width, set: times, sources: sources}
	var err error
	if p.time, err = probe.Fit(ctx, probe.Linear, times); err != nil {
		return nil, n, err
	}
	if len(energies.Values) >= minProbed {
		if p.energy, err = probe.Fit(ctx, probe.Linear, energies); err != nil {
			return nil, n, err
		}
	}
	p.distances, err = probe.NewDistances(times)
	return p, n, err
}

// usualWidth returns the length that most vectors have.
func usualWidth(all []record.Features, of func(*record.Features) []float32) int {
	count := make(map[int]int)
	best := 0
	for i := range all {
		if n := len(of(&all[i])); n > 0 {
			if count[n]++; count[n] > count[best] || best == 0 {
				best = n
			}
		}
	}
	return best
}

// predictByCode asks a probe what a job takes, and takes its answer where it is surer than
// history's, or history has none.
func (f *Forecaster) predictByCode(j *Job, found *predict.Forecast, out *epdapi.Forecast) {
	p := f.probes.Load()
	if p == nil {
		return
	}
	with, rung := p.code, predict.Code
	code, _ := f.codes.get(j.Source, f.options.Clock(), false)
	if with == nil || len(code) != with.width {
		with, rung = p.script, predict.Script
		if with == nil || j.Script == "" || with.width != words.Dimensions {
			return
		}
		code = toFloat32(words.Embed(words.Read(j.Script[:min(len(j.Script), embedScript)])))
	}
	v := toFloat64(code)
	strange := with.distances.NoveltyOf(v)
	out.Code, out.Strange, out.Score = rung == predict.Code, strange.IsOutside, strange.Score
	probes := map[predict.Target]probe.Probe{predict.Time: with.time, predict.Energy: with.energy}
	for target, by := range probes {
		if by == nil {
			continue
		}
		e := by.Estimate(v)
		q := predict.Prediction{Value: e.Value, Low: e.Low, High: e.High, Rung: rung}
		if strange.IsOutside { // anything could happen
			spread := math.Sqrt(slices.Max(with.set.Values) / slices.Min(with.set.Values))
			q.Low, q.High = q.Low/spread, q.High*spread
		}
		if h := &found[target]; h.Rung == predict.Prior || q.High/q.Low < h.High/h.Low {
			*h = q
		}
	}
}
