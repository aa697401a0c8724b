package web

import (
	"context"
	"net/url"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/web/login"
	"github.com/epplan/epplan/slurm"
)

// Source answers for one viewer what pages show, and says nothing that the viewer may
// not see: [epdapi.Client] is one. What isn't there, or not for this viewer, is an
// [epdapi.RefusedError].
type Source interface {
	Overview(ctx context.Context) (*epdapi.Overview, error)
	Queue(ctx context.Context) (*epdapi.Queue, error)
	Jobs(ctx context.Context, query url.Values) (*epdapi.JobPage, error)
	// Job takes a job as people name it: by its number, or as a task of an array, 4_3.
	Job(ctx context.Context, job string) (*epdapi.JobView, error)
	Series(ctx context.Context, id slurm.JobID) (*epdapi.JobSeries, error)
	Nodes(ctx context.Context) (*epdapi.NodeList, error)
	Levers(ctx context.Context) (*epdapi.Levers, error)
	Models(ctx context.Context) (*epdapi.ModelList, error)
	ModelVersions(ctx context.Context, workload, gpuModel string) (*epdapi.ModelVersions, error)
	Fit(ctx context.Context, workload, gpuModel string) (*epdapi.ModelFit, error)
}

// Issuer has people log in where the site does; its errors are a [login.IssuerError].
type Issuer interface {
	// Begin returns the address there, and what the browser must bring back to redirect.
	Begin(ctx context.Context, redirect, next string) (address, attempt string, err error)
	// Finish returns who logged in by what the issuer's redirect says.
	Finish(ctx context.Context, attempt string, answer url.Values) (*login.IssuerLogin, error)
}

// Administration answers the pages of operators and administrators, and acts for one viewer, if the viewer
// may; its errors are a [Source]'s.
type Administration interface {
	Usage(ctx context.Context, since, until time.Time, by string, own bool) (*epdapi.Usage, error)
	Status(ctx context.Context) (*epdapi.Status, error)
	UseModel(ctx context.Context, m *epdapi.ModelChoice) (*epdapi.ModelStatus, error)
	UndoLevers(ctx context.Context) (*epdapi.UndoLeversAnswer, error)
	Reload(ctx context.Context) (*epdapi.ReloadAnswer, error)
}
