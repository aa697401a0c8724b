package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/pause"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/live"
)

// recordsRetry is how often records are tried that couldn't be opened.
var recordsRetry = 15 * time.Second

// continueAsAgent goes on as an agent alone where this process was to be both, and its disk
// is full or can't be written, or the records have a schema that it doesn't know: clocks are given back, jobs run at default clocks, and
// what becomes of runs waits here. Once the records can be opened epd ends, to be started
// with a controller again.
func continueAsAgent(p *program, err error) error {
	p.noRecords = fmt.Errorf("no controller: jobs run at default clocks, and outcomes wait: %w", err)
	p.noteProblem(p.noRecords)
	p.role = roleAgent
	p.metrics = p.newMetrics()
	p.loops = append(p.loops, func(ctx context.Context) { awaitRecords(ctx, p) })
	if !p.isSocketWanted("submit-socket") {
		return nil
	}
	l, err := p.listenAt("submit-socket", p.String("submit-socket"), publicMode)
	if err != nil {
		return err
	}
	p.serveAt(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { // systemd may listen already
		http.Error(w, p.noRecords.Error(), http.StatusServiceUnavailable)
	}), doorOf(p))
	return nil
}

// awaitRecords ends the program once the records can be opened. Opening checks the whole file, and so it
// takes no more than a tenth of the time.
func awaitRecords(ctx context.Context, p *program) {
	path := filepath.Join(p.String("state"), "records.db")
	for wait := recordsRetry; pause.For(ctx, wait) == nil; {
		began := time.Now()
		records, err := store.Open(ctx, path, nil)
		if err != nil {
			wait = max(recordsRetry, 10*time.Since(began)) //nolint:mnd // a tenth
			continue
		}
		if err := records.Close(); err == nil {
			p.fail(fmt.Errorf("%s can be opened again: epd ends, to be started with a controller", path))
			return
		}
	}
}

// absentController is a controller that isn't there: it says why.
type absentController struct{ why error }

func (c absentController) Decide(context.Context, *epdapi.DecideRequest) (live.Decision, error) {
	return live.Decision{}, c.why
}

func (c absentController) Record(context.Context, []byte) error { return c.why }

func (c absentController) Outlook(context.Context, epdapi.OutlookRequest) (live.Outlook, error) {
	return live.Outlook{}, c.why
}

func (c absentController) Report(context.Context, *epdapi.NodeReport) (epdapi.ReportAnswer, error) {
	return epdapi.ReportAnswer{}, c.why
}
