package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/configfiles"
	"github.com/epplan/epplan/internal/control"
	"github.com/epplan/epplan/internal/daemon"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/slurmqueue"
	"github.com/epplan/epplan/internal/web"
	"github.com/epplan/epplan/internal/web/login"
	"github.com/epplan/epplan/internal/web/oidc"
	"github.com/epplan/epplan/slurm"
)

// planTerms returns what settings say of plans.
func planTerms(s *control.Settings) *slurmqueue.PlanTerms {
	return &slurmqueue.PlanTerms{
		Profiles: s.Profiles, Goal: s.Goal, Safety: s.Safety, PaceOf: s.Live.Plan.PaceOf,
	}
}

// openSite makes the pages, which sockets and the port serve.
func (p *program) openSite() {
	server := p.controllerServer()
	inner := server.InternalHandler()
	tokens := &cachedFile[*login.Tokens]{
		read: login.ReadTokenFile, failed: func(err error) {
			p.log.Error("nobody can log in to the pages", "error", err)
		},
	}
	p.site = web.New(web.Options{
		Source: func(v login.Viewer) (web.Source, web.Administration) {
			source := &pageSource{server, callerOf(v)}
			return source, source
		},
		API:      func(v login.Viewer) http.Handler { return inner(callerOf(v)) },
		Proved:   daemon.MarkProven,
		Accounts: p.access.User,
		Issuer:   oidc.New(func() config.OIDC { return p.webSettings().OIDC }, nil),
		Version:  version, Log: p.log, TLS: p.webSettings().Cert != "",
		Settings: p.webSettings,
		Terms:    func() *slurmqueue.PlanTerms { return planTerms(p.control.Settings()) },
		Tokens: func() (*login.Tokens, error) {
			path := p.webSettings().TokenFile
			if path == "" {
				return nil, nil //nolint:nilnil // nobody may log in
			}
			return tokens.get(path)
		},
	})
	// Where there are very many records, the first overview takes some tenths of a
	// second: nobody has to wait for it.
	p.loops = append(p.loops, func(ctx context.Context) {
		_, _ = p.control.Queries.Overview(ctx, query.ForEPD())
	})
}

// pageSource answers what pages ask for a viewer, as the JSON interface would.
type pageSource struct {
	server *daemon.ControllerServer
	caller query.Caller
}

// answerTime is how long an answer may take, as at a socket.
const answerTime = 5 * time.Second

// ask returns what a question comes to, within its time. Errors are those of the JSON
// interface.
func ask[A any](
	ctx context.Context, p *pageSource, path string, question func(context.Context, query.Caller) (A, error),
) (A, error) {
	var none A
	if err := ctx.Err(); err != nil {
		return none, fmt.Errorf("%s: %w", path, err)
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	v, err := question(ctx, p.caller)
	if err != nil {
		return none, control.Refused(path, err)
	}
	return v, nil
}

// bindArgument returns a question about one thing, as one without an argument.
func bindArgument[Q, A any](
	question func(context.Context, query.Caller, Q) (A, error), what Q,
) func(context.Context, query.Caller) (A, error) {
	return func(ctx context.Context, who query.Caller) (A, error) { return question(ctx, who, what) }
}

// Overview returns the cluster at a glance.
func (p *pageSource) Overview(ctx context.Context) (*epdapi.Overview, error) {
	return ask(ctx, p, epdapi.PathOverview, p.server.Control.Queries.Overview)
}

// Status returns how the controller fares.
func (p *pageSource) Status(ctx context.Context) (*epdapi.Status, error) {
	return p.server.StatusFor(ctx, p.caller), nil
}

// Queue is Slurm's queue. It may be long: what bounds it is the page's time.
func (p *pageSource) Queue(ctx context.Context) (*epdapi.Queue, error) {
	q, err := p.server.Control.Queries.Queue(ctx, p.caller)
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
	return ask(ctx, p, epdapi.PathJobs,
		func(ctx context.Context, who query.Caller) (*epdapi.JobPage, error) {
			asked, err := query.ParseJobs(values.Encode())
			if err != nil {
				return nil, err
			}
			return p.server.Control.Queries.Jobs(ctx, who, asked)
		})
}

// Job returns everything that is known of a job, by its number or as a task of an array.
func (p *pageSource) Job(ctx context.Context, job string) (*epdapi.JobView, error) {
	return ask(ctx, p, epdapi.PathJobs+"/"+job,
		func(ctx context.Context, who query.Caller) (*epdapi.JobView, error) {
			id, err := p.server.Control.Jobs.Number(ctx, job)
			if err != nil {
				return nil, err
			}
			return p.server.Control.Queries.Job(ctx, who, id)
		})
}

// Series returns the time series of a job's runs.
func (p *pageSource) Series(ctx context.Context, id slurm.JobID) (*epdapi.JobSeries, error) {
	path := epdapi.PathJobs + "/" + id.String() + epdapi.SuffixSeries
	return ask(ctx, p, path, bindArgument(p.server.Control.Queries.Series, id))
}

// Usage returns the usage of runs that ended in a period, by groups.
func (p *pageSource) Usage(
	ctx context.Context, since, until time.Time, by string, own bool,
) (*epdapi.Usage, error) {
	return ask(ctx, p, epdapi.PathUsage, func(ctx context.Context, who query.Caller) (*epdapi.Usage, error) {
		u, err := p.server.Control.Queries.Usage(ctx, who, since, until, by, own)
		return &u, err
	})
}

// Levers returns those in force.
func (p *pageSource) Levers(ctx context.Context) (*epdapi.Levers, error) {
	return ask(ctx, p, epdapi.PathLevers, p.server.Levers)
}

// Nodes returns what is known of nodes.
func (p *pageSource) Nodes(ctx context.Context) (*epdapi.NodeList, error) {
	return p.server.Control.Queries.Nodes(ctx, p.caller), nil
}

// Models returns how all models fare.
func (p *pageSource) Models(ctx context.Context) (*epdapi.ModelList, error) {
	return ask(ctx, p, epdapi.PathModels, p.server.Control.Queries.Models)
}

// ModelVersions returns all versions of a workload's model.
func (p *pageSource) ModelVersions(
	ctx context.Context, workload, gpuModel string,
) (*epdapi.ModelVersions, error) {
	return ask(ctx, p, epdapi.PathModels,
		func(ctx context.Context, who query.Caller) (*epdapi.ModelVersions, error) {
			return p.server.Control.Queries.ModelVersions(ctx, who, workload, gpuModel)
		})
}

// Fit returns a model with the runs behind it.
func (p *pageSource) Fit(ctx context.Context, workload, gpuModel string) (*epdapi.ModelFit, error) {
	return ask(ctx, p, epdapi.PathFit, func(ctx context.Context, who query.Caller) (*epdapi.ModelFit, error) {
		return p.server.Control.Queries.Fit(ctx, who, workload, gpuModel)
	})
}

// UseModel chooses the version of a model that counts.
func (p *pageSource) UseModel(ctx context.Context, m *epdapi.ModelChoice) (*epdapi.ModelStatus, error) {
	return ask(ctx, p, epdapi.PathModelsUse, bindArgument(p.server.Control.Queries.UseModel, m))
}

// UndoLevers takes all levers back, which has a time of its own.
func (p *pageSource) UndoLevers(ctx context.Context) (*epdapi.UndoLeversAnswer, error) {
	return ask(ctx, p, epdapi.PathLeversUndo, p.server.UndoLevers)
}

// Reload has the configuration read again.
func (p *pageSource) Reload(ctx context.Context) (*epdapi.ReloadAnswer, error) {
	return ask(ctx, p, epdapi.PathReload, p.server.Control.Queries.Reload)
}

// webSettings returns the [web] keys in force.
func (p *program) webSettings() config.Web {
	if p.control == nil {
		return config.Web{}
	}
	return p.control.Settings().Web
}

// callerOf returns a viewer as the controller knows callers. Nobody in particular has
// a uid that no job has.
func callerOf(v login.Viewer) query.Caller {
	c := query.Caller{UID: math.MaxUint32, Name: v.Name, Operator: v.SeesAll(), Admin: v.Acts()}
	if v.UID >= 0 && v.UID < math.MaxUint32 {
		c.UID = uint32(v.UID)
	} else if !c.Operator {
		c.Name = "" // that of a token is no user's
	}
	return c
}

// pages serves the pages at a socket, where the kernel says who asks.
func (p *program) pages() http.Handler {
	site := p.site.Socket(func(r *http.Request) login.Viewer {
		c := query.CallerOf(r.Context())
		v := login.Viewer{UID: int64(c.UID), Name: c.Name, Role: login.User}
		switch {
		case c.Admin:
			v.Role = login.Admin
			v.Name = p.access.Name(c.UID)
		case c.Operator:
			v.Role = login.Reader
		}
		return v
	})
	return p.access.ServeUsers(daemon.Peer, site)
}

// webHosts are further names of this machine: pages of other sites are kept away from a
// socket that a browser reaches through a tunnel.
func (p *program) webHosts() []string { return p.webSettings().Hosts }

// openWeb listens for browsers.
func (p *program) openWeb() error {
	if !p.isSocketWanted("web") {
		return nil
	}
	s := p.webSettings()
	if err := configfiles.WebSecrets(&s); err != nil {
		return err
	}
	l, err := p.listen("web")
	if err != nil {
		return err
	}
	if s.Cert == "" && !s.Insecure && !isLoopback(l.Addr()) {
		return errors.Join(fmt.Errorf("--web %s: want cert and key in [web] of the configuration for an "+
			"address that others reach, or insecure = true, "+
			"or a loopback address behind a proxy or ssh -L: tokens and pages could be read on the way",
			l.Addr()), l.Close())
	}
	if s.Cert != "" {
		if l, err = withTLS(l, p.webSettings, p.log); err != nil {
			return err
		}
	}
	if s.TokenFile == "" && !s.HasNames() {
		p.log.Warn("pages are served where nobody can log in: [web] has no token_file, proxy_header or oidc",
			"address", l.Addr().String())
	}
	door := doorOf(p)
	door.Sessions = true
	p.serveAt(l, p.site.Network(), door)
	return nil
}

// isLoopback reports whether only this machine reaches an address.
func isLoopback(a net.Addr) bool {
	if a.Network() == "unix" {
		return true
	}
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// withTLS has a listener speak TLS. A certificate that is renewed counts for the
// next connection; one that can't be read then leaves the last one.
func withTLS(l net.Listener, settings func() config.Web, log *slog.Logger) (net.Listener, error) {
	pair := func(cert string) (*tls.Certificate, error) {
		c, err := tls.LoadX509KeyPair(cert, settings().Key)
		return &c, err
	}
	certificates := &cachedFile[*tls.Certificate]{
		read: pair, keep: true, failed: func(err error) {
			log.Error("the certificate of the pages stays the last one", "error", err)
		},
	}
	if _, err := certificates.get(settings().Cert); err != nil {
		return nil, errors.Join(fmt.Errorf("[web] cert and key: %w", err), l.Close())
	}
	return tls.NewListener(l, &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return certificates.get(settings().Cert)
		},
	}), nil
}

// cachedFile is what a file says, read again where the file changed.
type cachedFile[T any] struct {
	read   func(path string) (T, error)
	keep   bool             // after an error, what was read last still counts
	failed func(error)      // told once of each error
	now    func() time.Time // nil: time.Now

	mu    sync.Mutex
	path  string
	stamp fileStamp
	tried time.Time // last
	value T
	err   error
	good  bool
}

// fileStamp tells versions of a file apart.
type fileStamp struct {
	changed time.Time
	size    int64
	mode    fs.FileMode
	owner   uint32
}

// retryAfter is after how long a file that couldn't be used is read again though it
// didn't change: what was wrong may lie elsewhere, as with a certificate's key.
const retryAfter = time.Second

// get returns what a file says now.
func (c *cachedFile[T]) get(path string) (T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stamp := fileStamp{}
	if info, err := os.Stat(path); err == nil {
		stamp = fileStamp{changed: info.ModTime(), size: info.Size(), mode: info.Mode()}
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			stamp.owner = s.Uid
		}
	}
	now := time.Now()
	if c.now != nil {
		now = c.now()
	}
	if path == c.path && stamp == c.stamp &&
		(c.err == nil && c.good || c.err != nil && now.Sub(c.tried) < retryAfter) {
		return c.lastResult()
	}
	before := c.err
	value, err := c.read(path)
	c.path, c.stamp, c.err, c.tried = path, stamp, err, now
	switch {
	case err == nil:
		c.value, c.good = value, true
	case !c.keep:
		var none T
		c.value, c.good = none, false
	}
	if err != nil && (before == nil || before.Error() != err.Error()) {
		c.failed(err)
	}
	return c.lastResult()
}

// lastResult returns what was read last, or why nothing was.
func (c *cachedFile[T]) lastResult() (T, error) {
	if c.err != nil && c.keep && c.good {
		return c.value, nil
	}
	return c.value, c.err
}
