package forecast

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/predict"
	"github.com/epplan/epplan/internal/predict/probe"
	words "github.com/epplan/epplan/internal/predict/source"
	"github.com/epplan/epplan/internal/store/record"
)

// Bounds of what users may tell of their code.
const (
	maxCodesOfUser = 32
	maxAsksOfUser  = 4 // texts that wait for a server, which may take minutes for each
	maxCodes       = 4096
	codeTrust      = 24 * time.Hour
	maxCodeText    = 64 << 10 // bytes: what an embedding server is sent
	maxCodeFiles   = 1000
	maxCoordinate  = 1e3      // of a vector: logarithms and counts
	embedScript    = 16 << 10 // bytes of a script that are looked at: a submission waits, and a thousand may be queued
)

// codes are what users told of the code of jobs that they didn't submit yet.
type codes struct {
	mu   sync.Mutex
	of   map[string]*announced // by source
	asks map[uint32]int        // of users, that servers weren't asked yet
}

// announced is what was told of a job's code.
type announced struct {
	uid       uint32
	at        time.Time
	vector    []float32
	digest    []byte
	submitted bool // a job of it was submitted
}

// put keeps what a user told, in place of the oldest where there is too much.
func (c *codes) put(source string, a *announced) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = make(map[string]*announced)
	}
	if _, there := c.of[source]; !there {
		c.makeRoom(a)
	}
	c.of[source] = a
}

func (c *codes) makeRoom(a *announced) {
	mine := 0
	var oldest, myOldest string
	for source, old := range c.of {
		if a.at.Sub(old.at) > codeTrust {
			delete(c.of, source)
			continue
		}
		if o := c.of[oldest]; o == nil || old.at.Before(o.at) {
			oldest = source
		}
		if old.uid == a.uid {
			mine++
			if o := c.of[myOldest]; o == nil || old.at.Before(o.at) {
				myOldest = source
			}
		}
	}
	if mine >= maxCodesOfUser {
		delete(c.of, myOldest)
	} else if len(c.of) >= maxCodes {
		delete(c.of, oldest)
	}
}

// get is what was told of a job's code; nil: nothing.
func (c *codes) get(source string, now time.Time, submitted bool) (vector []float32, digest []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.of[source]
	if a == nil || now.Sub(a.at) > codeTrust {
		return nil, nil
	}
	a.submitted = a.submitted || submitted
	return a.vector, a.digest
}

// CheckCode says what is impossible about a code's features.
func CheckCode(c *epdapi.Code) error {
	switch {
	case len(c.Vector) != words.Dimensions:
		return fmt.Errorf("a vector of %d coordinates, want %d", len(c.Vector), words.Dimensions)
	case slices.ContainsFunc(c.Vector, func(x float32) bool { return !(math.Abs(float64(x)) <= maxCoordinate) }):
		return fmt.Errorf("a vector with coordinates beyond %g", maxCoordinate)
	case c.Files < 1 || c.Files > maxCodeFiles || len(c.Digest) > 64 || len(c.Text) > maxCodeText:
		return fmt.Errorf("code of %d files, a digest of %d bytes and a text of %d", c.Files, len(c.Digest), len(c.Text))
	}
	return nil
}

// Announce keeps what a user tells of the code of a job that is to be submitted, under
// the sources by which it may be known then, and asks servers about its text, if that
// is told, too. False: nothing is kept, as predictions are off.
func (f *Forecaster) Announce(uid uint32, sources []string, code *epdapi.Code) bool {
	if !f.options.Settings().Enabled {
		return false
	}
	now := f.options.Clock()
	a := &announced{uid: uid, at: now, digest: []byte(code.Digest)}
	if f.servers().embed == nil {
		a.vector = code.Vector
	}
	for _, source := range sources {
		if before, _ := f.codes.get(source, now, false); a.vector == nil && code.Text == "" && before != nil {
			continue // the server's embedding is there already
		}
		f.codes.put(source, a)
	}
	if code.Text != "" && f.servers().any() && f.codes.ask(uid) {
		if !f.later(work{script: &scriptWork{source: sources[0], text: string(code.Text), announced: a}}) {
			f.codes.asked(uid)
		}
	}
	return true
}

// WantsText reports whether the text of a code is wanted, too.
func (f *Forecaster) WantsText(code *epdapi.Code) bool {
	return code.Text == "" && f.servers().any()
}

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
	f.later(work{script: w})
}

// keepFeatures stores what a script looks like, and asks an embedding server.
func (f *Forecaster) keepFeatures(ctx context.Context, w *scriptWork) {
	if w.text != "" {
		defer f.codes.asked(w.announced.uid)
		f.askServers(ctx, w)
		return
	}
	features := &record.Features{Cluster: f.options.Cluster, Source: w.source, Code: w.code, Digest: w.digest, Seen: f.options.Clock()}
	if w.script != "" {
		features.Script = narrow(words.Embed(words.Read(w.script)))
	}
	if err := f.options.Records.PutFeatures(ctx, features); err != nil && ctx.Err() == nil {
		f.options.Log.Warn("features of a script can't be stored", "error", err)
	}
}

func narrow(v []float64) []float32 {
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = float32(x)
	}
	return out
}

func widen(v []float32) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return out
}

// probes estimate jobs from what their scripts and their code look like.
type probes struct{ script, code *probed }

// probed is fitted to features of one kind.
type probed struct {
	width        int
	time, energy probe.Probe // energy in kWh; nil: too few are known
	distances    *probe.Distances
	set          *probe.Set
	sources      []string // by place in the set
}

const (
	maxProbed   = 400 // scripts that probes are fitted to, the latest ones
	leastProbed = 12
)

// fitProbes fits probes to the latest scripts and what their runs took.
func (f *Forecaster) fitProbes(ctx context.Context, ended []record.Ended, version *training) error {
	all, err := f.options.Records.Features(ctx, f.options.Cluster, maxProbed)
	if err != nil {
		return err
	}
	took := make(map[string]*record.Ended, len(all)) // the last run
	for i := range ended {
		if e := &ended[i]; e.Completed && e.ScriptHash != "" {
			took[e.ScriptHash] = e
		}
	}
	p := &probes{}
	p.script, version.Scripts, err = fitProbed(ctx, all, took, func(f *record.Features) []float32 { return f.Script })
	if err == nil {
		p.code, version.Codes, err = fitProbed(ctx, all, took, func(f *record.Features) []float32 { return f.Code })
	}
	if err != nil {
		return err
	}
	f.probes.Store(p)
	return nil
}

// fitProbed fits to features of the length that most of them have; nil: there are too
// few.
func fitProbed(ctx context.Context, all []record.Features, took map[string]*record.Ended, of func(*record.Features) []float32) (*probed, int, error) {
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
		truths := truthOf(e)
		if t := truths[predict.Time]; t > 0 && !math.IsInf(t, 1) {
			sources = append(sources, all[i].Source)
		}
		for target, set := range map[predict.Target]*probe.Set{predict.Time: times, predict.Energy: energies} {
			if truth := truths[target]; truth > 0 && !math.IsInf(truth, 1) {
				set.Embeddings, set.Values = append(set.Embeddings, widen(v)), append(set.Values, truth)
			}
		}
	}
	n := len(times.Values)
	if n < leastProbed {
		return nil, n, nil
	}
	p := &probed{width: width, set: times, sources: sources}
	var err error
	if p.time, err = probe.Fit(ctx, probe.Linear, times); err != nil {
		return nil, n, err
	}
	if len(energies.Values) >= leastProbed {
		if p.energy, err = probe.Fit(ctx, probe.Linear, energies); err != nil {
			return nil, n, err
		}
	}
	p.distances, err = probe.NewDistances(times)
	return p, n, err
}

// usualWidth is the length that most vectors have.
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

// byCode asks a probe what a job takes, and takes its answer where it is surer than
// history's, or history has none.
func (f *Forecaster) byCode(j *Job, found *predict.Forecast, out *epdapi.Forecast) {
	p := f.probes.Load()
	if p == nil {
		return
	}
	with, rung := p.code, predict.Code
	code, _ := f.codes.get(j.Source, f.options.Clock(), false)
	if with == nil || len(code) != with.width {
		if with, rung = p.script, predict.Script; with == nil || j.Script == "" || with.width != words.Dimensions {
			return
		}
		code = narrow(words.Embed(words.Read(j.Script[:min(len(j.Script), embedScript)])))
	}
	v := widen(code)
	strange := with.distances.Of(v)
	out.Code, out.Strange, out.Score = rung == predict.Code, strange.Out, strange.Score
	for target, by := range map[predict.Target]probe.Probe{predict.Time: with.time, predict.Energy: with.energy} {
		if by == nil {
			continue
		}
		e := by.Estimate(v)
		q := predict.Prediction{Value: e.Value, Low: e.Low, High: e.High, Rung: rung}
		if strange.Out { // anything could happen
			spread := math.Sqrt(slices.Max(with.set.Values) / slices.Min(with.set.Values))
			q.Low, q.High = q.Low/spread, q.High*spread
		}
		if h := &found[target]; h.Rung == predict.Prior || q.High/q.Low < h.High/h.Low {
			*h = q
		}
	}
}

// Status is how predictions fare.
func (f *Forecaster) Status() *epdapi.ForecastStatus {
	s := &epdapi.ForecastStatus{
		Enabled: f.options.Settings().Enabled, Missed: f.counters.missed.Load(), Scores: f.tally.scores(),
		Trainings: f.counters.trainings.Load(), Aligned: f.counters.aligned.Load(), AskErrors: f.counters.askErrors.Load(),
	}
	if t := f.latest.Load(); t != nil {
		s.Version, s.Jobs, s.Imported, s.Scripts, s.Codes = t.Version, t.Own+t.Imported, t.Imported, t.Scripts, t.Codes
	}
	return s
}
