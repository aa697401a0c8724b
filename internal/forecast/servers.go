package forecast

import (
	"context"
	"sync"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/align"
	"github.com/epplan/epplan/internal/embed"
	"github.com/epplan/epplan/internal/predict/probe"
	words "github.com/epplan/epplan/internal/predict/source"
)

// servers are those that settings name; nil where they name none, or one that can't
// be asked.
type servers struct {
	settings *config.Predict
	embed    *embed.Client
	align    *align.Client
}

func (s *servers) any() bool { return s.embed != nil || s.align != nil }

// servers returns those of the settings in force.
func (f *Forecaster) servers() *servers {
	p := f.options.Settings()
	if made := f.askable.Load(); made != nil && made.settings == p {
		return made
	}
	made := &servers{settings: p}
	var err error
	if e := &p.Embedding; e.URL != "" {
		made.embed, err = embed.New(&embed.Options{
			URL: e.URL, Hosts: p.AllowHosts, Model: e.Model, KeyFile: e.KeyFile,
			Cache: p.Cache, Timeout: secondsOf(e.TimeoutS),
		})
		if err != nil {
			made.embed = nil
			f.options.Log.Error("code isn't sent to the embedding server", "error", err)
		}
	}
	if e := &p.Align; e.URL != "" {
		made.align, err = align.New(&align.Options{
			URL: e.URL, Hosts: p.AllowHosts, Model: e.Model, KeyFile: e.KeyFile,
			Rounds: p.Rounds, Timeout: secondsOf(e.TimeoutS),
		})
		if err != nil {
			made.align = nil
			f.options.Log.Error("code isn't sent to the rewriting server", "error", err)
		}
	}
	f.askable.Store(made)
	return made
}

func secondsOf(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// texts are those of announced code, in memory alone: what rewrites are to be like.
type texts struct {
	mu    sync.Mutex
	of    map[string]string
	order []string
}

// maxTexts is how many texts of code are kept in memory, of 64 KiB at most each.
const maxTexts = 64

func (t *texts) put(source, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = make(map[string]string)
	}
	if _, there := t.of[source]; !there {
		if len(t.order) == maxTexts {
			delete(t.of, t.order[0])
			t.order = t.order[1:]
		}
		t.order = append(t.order, source)
	}
	t.of[source] = text
}

// nearest are texts of jobs that were learnt from, at most a few of those that an
// embedding is most like.
func (t *texts) nearest(p *fittedProbe, e []float64) []string {
	const many, few = 30, 3
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []string
	for _, i := range p.distances.Nearest(e, many) {
		if text, there := t.of[p.sources[i]]; there && len(out) < few {
			out = append(out, text)
		}
	}
	return out
}

// askServers has the embedding server's answer about a code count, and that of a
// rewrite where the code is unlike all that was learnt from.
func (f *Forecaster) askServers(ctx context.Context, w *scriptWork) {
	s := f.servers()
	embedding := func(ctx context.Context, text string) ([]float64, error) {
		if s.embed == nil {
			return words.Embed(words.Read(text)), nil
		}
		found, err := s.embed.Embed(ctx, []string{text})
		if err != nil {
			return nil, err
		}
		return found[0], nil
	}
	e, err := embedding(ctx, w.text)
	if err != nil {
		f.counters.askErrors.Add(1)
		f.options.Log.Info("no embedding of a job's code", "error", err)
		return
	}
	rewritten := f.alignedEmbedding(ctx, s, w, e, embedding)
	if rewritten != nil {
		e = rewritten
		f.counters.aligned.Add(1)
	} else {
		f.texts.put(w.source, w.text)
	}
	f.codes.mu.Lock()
	w.announced.vector = toFloat32(e)
	submitted := w.announced.submitted
	f.codes.mu.Unlock()
	if submitted {
		f.keepFeatures(ctx, &scriptWork{source: w.source, code: toFloat32(e), digest: w.announced.digest})
	}
}

// alignedEmbedding returns the embedding of a rewrite of code that is unlike all that was learnt
// from; nil: it isn't, or there is none that passes.
func (f *Forecaster) alignedEmbedding(
	ctx context.Context, s *servers, w *scriptWork, e []float64,
	embedding func(context.Context, string) ([]float64, error),
) []float64 {
	p := f.probes.Load()
	if s.align == nil || p == nil || p.code == nil || p.code.width != len(e) ||
		!p.code.distances.NoveltyOf(e).IsOutside {
		return nil
	}
	examples := f.texts.nearest(p.code, e)
	if len(examples) == 0 {
		return nil
	}
	var rewritten []float64
	strangeness := func(ctx context.Context, text string) (probe.Novelty, error) {
		var err error
		if rewritten, err = embedding(ctx, text); err != nil || len(rewritten) != p.code.width {
			return probe.Novelty{IsOutside: true}, err
		}
		return p.code.distances.NoveltyOf(rewritten), nil
	}
	result, err := s.align.Align(ctx, w.text, examples, strangeness)
	if err != nil || result.Text == "" {
		f.counters.askErrors.Add(1)
		f.options.Log.Info("a job's code is taken as it is: no rewrite passed",
			"rounds", result.Rounds, "why", result.Why, "error", err)
		return nil
	}
	return rewritten
}
