package web

import (
	"context"
	"net/http"
	"net/url"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/slurm"
)

// Source answers for one viewer, and says nothing that the viewer may not see:
// [epdapi.Client] is one. What isn't there, or not for this viewer, is an
// [epdapi.RefusedError].
type Source interface {
	Overview(ctx context.Context) (*epdapi.Overview, error)
	Status(ctx context.Context) (*epdapi.Status, error)
	Queue(ctx context.Context) (*epdapi.Queue, error)
	Jobs(ctx context.Context, query url.Values) (*epdapi.JobPage, error)
	Job(ctx context.Context, id slurm.JobID) (*epdapi.JobView, error)
	Series(ctx context.Context, id slurm.JobID) (*epdapi.JobSeries, error)
	Levers(ctx context.Context) (*epdapi.Levers, error)
	Nodes(ctx context.Context) (*epdapi.NodeList, error)
	Models(ctx context.Context) (*epdapi.ModelList, error)
	ModelVersions(ctx context.Context, workload, gpuModel string) (*epdapi.ModelVersions, error)
	Fit(ctx context.Context, workload, gpuModel string) (*epdapi.ModelFit, error)
	UseModel(ctx context.Context, m *epdapi.ModelChoice) (*epdapi.ModelStatus, error)
	UndoLevers(ctx context.Context) (*epdapi.UndoLeversAnswer, error)
	Reload(ctx context.Context) (*epdapi.ReloadAnswer, error)
}

var _ Source = (*epdapi.Client)(nil)

// InProcessClient is a client of a handler in this process, which knows who asks.
func InProcessClient(handler http.Handler) *epdapi.Client {
	return epdapi.NewRemote("epd", handlerTransport{handler})
}

// handlerTransport carries requests to a handler.
type handlerTransport struct{ handler http.Handler }

// RoundTrip has the handler answer. It is bounded by the handler's own time, and
// by the context.
func (t handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	a := &responseRecorder{header: make(http.Header), status: http.StatusOK}
	t.handler.ServeHTTP(a, r)
	return a.response(r), nil
}
