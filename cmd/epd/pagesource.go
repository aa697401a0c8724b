package main

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/epplan/epplan/internal/control"
	node "github.com/epplan/epplan/internal/daemon"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/web"
	"github.com/epplan/epplan/slurm"
)

// pageSource answers what pages ask for a viewer, as the JSON interface would.
type pageSource struct {
	server  *node.ControllerServer
	queries *query.Service
	caller  query.Caller
}

func newPageSource(server *node.ControllerServer, caller query.Caller) web.Source {
	return &pageSource{server, server.Control.Queries(), caller}
}

// answerTime is how long an answer may take, as at a socket.
const answerTime = 5 * time.Second

// askFor is what a question comes to, within its time. Errors are those of the JSON
// interface.
func askFor[T any](
	ctx context.Context, path string, question func(context.Context) (T, error),
) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, fmt.Errorf("%s: %w", path, err)
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	v, err := question(ctx)
	if err != nil {
		return none, control.Refused(path, err)
	}
	return v, nil
}

// Overview is the cluster at a glance.
func (p *pageSource) Overview(ctx context.Context) (*epdapi.Overview, error) {
	return askFor(ctx, epdapi.PathOverview, func(ctx context.Context) (*epdapi.Overview, error) {
		return p.queries.Overview(ctx, p.caller)
	})
}

// Status is how the controller fares.
func (p *pageSource) Status(ctx context.Context) (*epdapi.Status, error) {
	return p.server.StatusFor(ctx, p.caller), nil
}

// Queue is Slurm's queue. It may be long: what bounds it is the page's time.
func (p *pageSource) Queue(ctx context.Context) (*epdapi.Queue, error) {
	q, err := p.queries.Queue(ctx, p.caller)
	switch {
	case err == nil:
		return q, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	default:
		return nil, control.Refused(epdapi.PathQueue, err)
	}
}

// Jobs lists jobs; the query is that of the path.
func (p *pageSource) Jobs(ctx context.Context, values url.Values) (*epdapi.JobPage, error) {
	return askFor(ctx, epdapi.PathJobs, func(ctx context.Context) (*epdapi.JobPage, error) {
		asked, err := query.ParseJobs(values.Encode())
		if err != nil {
			return nil, err
		}
		return p.queries.Jobs(ctx, p.caller, asked)
	})
}

// Job is everything that is known of a job.
func (p *pageSource) Job(ctx context.Context, id slurm.JobID) (*epdapi.JobView, error) {
	path := epdapi.PathJobs + "/" + id.String()
	return askFor(ctx, path, func(ctx context.Context) (*epdapi.JobView, error) {
		return p.queries.Job(ctx, p.caller, id)
	})
}

// Series are the time series of a job's runs.
func (p *pageSource) Series(ctx context.Context, id slurm.JobID) (*epdapi.JobSeries, error) {
	path := epdapi.PathJobs + "/" + id.String() + epdapi.SuffixSeries
	return askFor(ctx, path, func(ctx context.Context) (*epdapi.JobSeries, error) {
		return p.queries.Series(ctx, p.caller, id)
	})
}

// Levers are those in force.
func (p *pageSource) Levers(ctx context.Context) (*epdapi.Levers, error) {
	return askFor(ctx, epdapi.PathLevers, func(context.Context) (*epdapi.Levers, error) {
		return p.server.Levers(p.caller)
	})
}

// Nodes is what is known of nodes.
func (p *pageSource) Nodes(ctx context.Context) (*epdapi.NodeList, error) {
	return p.queries.Nodes(ctx, p.caller), nil
}

// Models are how all models fare.
func (p *pageSource) Models(ctx context.Context) (*epdapi.ModelList, error) {
	return askFor(ctx, epdapi.PathModels, func(ctx context.Context) (*epdapi.ModelList, error) {
		return p.queries.Models(ctx, p.caller)
	})
}

// ModelVersions are all versions of a workload's model.
func (p *pageSource) ModelVersions(
	ctx context.Context, workload, gpuModel string,
) (*epdapi.ModelVersions, error) {
	return askFor(ctx, epdapi.PathModels, func(ctx context.Context) (*epdapi.ModelVersions, error) {
		return p.queries.ModelVersions(ctx, p.caller, workload, gpuModel)
	})
}

// Fit is a model with the runs behind it.
func (p *pageSource) Fit(ctx context.Context, workload, gpuModel string) (*epdapi.ModelFit, error) {
	return askFor(ctx, epdapi.PathFit, func(ctx context.Context) (*epdapi.ModelFit, error) {
		return p.queries.Fit(ctx, p.caller, workload, gpuModel)
	})
}

// UseModel chooses the version of a model that counts.
func (p *pageSource) UseModel(ctx context.Context, m *epdapi.ModelChoice) (*epdapi.ModelStatus, error) {
	return askFor(ctx, epdapi.PathModelsUse, func(ctx context.Context) (*epdapi.ModelStatus, error) {
		return p.queries.UseModel(ctx, p.caller, m)
	})
}

// UndoLevers takes all levers back, which has a time of its own.
func (p *pageSource) UndoLevers(ctx context.Context) (*epdapi.UndoLeversAnswer, error) {
	return askFor(ctx, epdapi.PathLeversUndo, func(ctx context.Context) (*epdapi.UndoLeversAnswer, error) {
		return p.server.UndoLevers(ctx, p.caller)
	})
}

// Reload has the configuration read again.
func (p *pageSource) Reload(ctx context.Context) (*epdapi.ReloadAnswer, error) {
	return askFor(ctx, epdapi.PathReload, func(ctx context.Context) (*epdapi.ReloadAnswer, error) {
		return p.queries.Reload(ctx, p.caller)
	})
}
