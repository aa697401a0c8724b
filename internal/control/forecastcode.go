package control

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/predict"
	"github.com/epplan/epplan/internal/predict/probe"
	words "github.com/epplan/epplan/internal/predict/source"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
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
	of   map[source]*announced
	asks map[uint32]int // of users, that servers weren't asked yet
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
func (c *codes) put(key source, a *announced) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = make(map[source]*announced)
	}
	if _, there := c.of[key]; !there {
		c.makeRoom(a)
	}
	c.of[key] = a
}

func (c *codes) makeRoom(a *announced) {
	mine := 0
	var oldest, myOldest source
	for key, old := range c.of {
		if a.at.Sub(old.at) > codeTrust {
			delete(c.of, key)
			continue
		}
		if o := c.of[oldest]; o == nil || old.at.Before(o.at) {
			oldest = key
		}
		if old.uid == a.uid {
			mine++
			if o := c.of[myOldest]; o == nil || old.at.Before(o.at) {
				myOldest = key
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
func (c *codes) get(key source, now time.Time, submitted bool) (vector []float32, digest []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.of[key]
	if a == nil || now.Sub(a.at) > codeTrust {
		return nil, nil
	}
	a.submitted = a.submitted || submitted
	return a.vector, a.digest
}

// decodeCode reads a submission and what comes with it of its code; nil: nothing.
func decodeCode(r io.Reader) (slurm.Submission, *epdapi.Code, error) {
	data, err := io.ReadAll(io.LimitReader(r, slurm.MaxMessage+1)) // DecodeSubmission refuses more
	if err != nil {
		return slurm.Submission{}, nil, err
	}
	s, err := slurm.DecodeSubmission(bytes.NewReader(data))
	if err != nil {
		return s, nil, err
	}
	var more struct {
		Code *epdapi.Code `json:"code"`
	}
	if err := DecodeJSON(bytes.NewReader(data), &more); err != nil {
		return s, nil, err
	}
	return s, more.Code, validCode(more.Code)
}

// validCode says what is impossible about a code's features.
func validCode(c *epdapi.Code) error {
	switch {
	case c == nil:
		return nil
	case len(c.Vector) != words.Dimensions:
		return fmt.Errorf("%w: a vector of %d coordinates, want %d", ErrRequest, len(c.Vector), words.Dimensions)
	case slices.ContainsFunc(c.Vector, func(x float32) bool { return !(math.Abs(float64(x)) <= maxCoordinate) }):
		return fmt.Errorf("%w: a vector with coordinates beyond %g", ErrRequest, maxCoordinate)
	case c.Files < 1 || c.Files > maxCodeFiles || len(c.Digest) > 64 || len(c.Text) > maxCodeText:
		return fmt.Errorf("%w: code of %d files, a digest of %d bytes and a text of %d", ErrRequest, c.Files, len(c.Digest), len(c.Text))
	}
	return nil
}

func (c *Controller) postCode(r *http.Request) (any, error) {
	s, code, err := decodeCode(r.Body)
	if err != nil {
		return nil, err
	}
	if code == nil {
		return nil, fmt.Errorf("%w: it says nothing of code", ErrRequest)
	}
	if who := CallerOf(r.Context()); !who.Control {
		s.UID = who.UID
	}
	return epdapi.CodeAnswer{Kept: c.announce(&s, code), WantsText: c.wantsText(&s, code)}, nil
}

// announce keeps what is told of the code of a job, unless predictions are off or the
// job doesn't want it.
func (c *Controller) announce(s *slurm.Submission, code *epdapi.Code) bool {
	now := c.options.Clock()
	if wishes := slurm.ParseWishes(string(s.Comment), now); code == nil || wishes.NoCode || !c.settings.Load().Predict.Enabled {
		return false
	}
	a := &announced{uid: s.UID, at: now, digest: []byte(code.Digest)}
	if c.servers().embed == nil {
		a.vector = code.Vector
	}
	script := scriptHash(s.Script)
	keys := []source{sourceOf(s.UID, script, string(s.Name))}
	if script != "" && c.counters.scripts.Load() == 0 {
		keys = append(keys, sourceOf(s.UID, "", string(s.Name))) // job_submit may send no scripts
	}
	for _, key := range keys {
		if before, _ := c.forecasts.codes.get(key, now, false); a.vector == nil && code.Text == "" && before != nil {
			continue // the server's embedding is there already
		}
		c.forecasts.codes.put(key, a)
	}
	if code.Text != "" && c.servers().any() && c.forecasts.codes.ask(s.UID) {
		if !c.later(forecastWork{script: &scriptWork{source: keys[0], text: string(code.Text), announced: a}}) {
			c.forecasts.codes.asked(s.UID)
		}
	}
	return true
}

// wantsText tells whether the text of a code is wanted, too.
func (c *Controller) wantsText(s *slurm.Submission, code *epdapi.Code) bool {
	if code == nil || code.Text != "" || !c.servers().any() {
		return false
	}
	return !slurm.ParseWishes(string(s.Comment), c.options.Clock()).NoCode
}

// scriptWork is a script that was submitted, or code to ask an embedding server about.
type scriptWork struct {
	source    source
	script    string
	code      []float32
	digest    []byte
	text      string
	announced *announced
}

// noteScript has what a submitted script looks like kept, as far as predictions look.
func (c *Controller) noteScript(a *asked, noCode bool) {
	w := &scriptWork{source: a.source, script: strings.Clone(a.script[:min(len(a.script), embedScript)])}
	if !noCode {
		w.code, w.digest = c.forecasts.codes.get(a.source, c.options.Clock(), true)
	}
	if w.script == "" && w.code == nil {
		return
	}
	c.later(forecastWork{script: w})
}

// keepFeatures stores what a script looks like, and asks an embedding server.
func (c *Controller) keepFeatures(ctx context.Context, w *scriptWork) {
	if w.text != "" {
		defer c.forecasts.codes.asked(w.announced.uid)
		c.askServers(ctx, w)
		return
	}
	f := &record.Features{Cluster: c.options.Cluster, Source: w.source.String(), Code: w.code, Digest: w.digest, Seen: c.options.Clock()}
	if w.script != "" {
		f.Script = narrow(words.Embed(words.Read(w.script)))
	}
	if err := c.options.Store.PutFeatures(ctx, f); err != nil && ctx.Err() == nil {
		c.options.Log.Warn("features of a script can't be stored", "error", err)
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
func (c *Controller) fitProbes(ctx context.Context, ended []record.Ended, version *training) error {
	all, err := c.options.Store.Features(ctx, c.options.Cluster, maxProbed)
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
	c.forecasts.probes.Store(p)
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
func (c *Controller) byCode(a *asked, found *predict.Forecast, out *epdapi.Forecast) {
	p := c.forecasts.probes.Load()
	if p == nil {
		return
	}
	with, rung := p.code, predict.Code
	code, _ := c.forecasts.codes.get(a.source, c.options.Clock(), false)
	if with == nil || len(code) != with.width {
		if with, rung = p.script, predict.Script; with == nil || a.script == "" || with.width != words.Dimensions {
			return
		}
		code = narrow(words.Embed(words.Read(a.script[:min(len(a.script), embedScript)])))
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

// forecastStatus is how predictions fare.
func (c *Controller) forecastStatus() *epdapi.ForecastStatus {
	s := &epdapi.ForecastStatus{
		Enabled: c.settings.Load().Predict.Enabled, Missed: c.forecasts.missed.Load(), Scores: c.forecasts.tally.scores(),
		Trainings: c.counters.trainings.Load(), Aligned: c.counters.aligned.Load(), AskErrors: c.counters.askErrors.Load(),
	}
	if t := c.forecasts.latest.Load(); t != nil {
		s.Version, s.Jobs, s.Imported, s.Scripts, s.Codes = t.Version, t.Own+t.Imported, t.Imported, t.Scripts, t.Codes
	}
	return s
}
