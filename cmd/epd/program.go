package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/begins"
	"github.com/epplan/epplan/internal/control"
	"github.com/epplan/epplan/internal/daemon"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/metrics"
	"github.com/epplan/epplan/internal/slurmqueue"
	"github.com/epplan/epplan/internal/steer"
	"github.com/epplan/epplan/internal/web"
	"github.com/epplan/epplan/slurm"
)

// program is a running epd: what it joined so far.
type program struct {
	*cli.Context
	log     *slog.Logger
	role    string
	started time.Time
	access  *daemon.Access
	control *control.Controller     // nil: it runs elsewhere
	steerer *steer.Steerer          // nil: Slurm isn't steered from here
	hours   begins.Book             // for jobs that can wait
	planner *slurmqueue.LivePlanner // with a steerer
	node    *daemon.AgentServer     // nil: there are no GPUs here
	metrics *metrics.Metrics
	site    *web.Site               // nil: there is no controller here
	passed  map[string]net.Listener // sockets that systemd opened, by the flag for which each stands
	slurm   bool                    // somebody can ask Slurm
	reloads chan os.Signal          // has SIGHUPs
	// refusals are those at the controller's port.
	refusals refusalLog

	problems  []epdapi.Problem // of the start
	noRecords error            // why this is an agent alone that was to be a controller, too

	fail    context.CancelCauseFunc // ends the program
	loops   []func(context.Context) // run until the end
	closers []func() error          // what is closed at the end, the last one first
}

// noteProblem notes something that went wrong while epd began, for the log and for the
// status.
func (p *program) noteProblem(err error) {
	if err == nil {
		return
	}
	p.log.Error(err.Error())
	p.problems = append(p.problems, epdapi.Problem{
		At: time.Now(), Message: slurm.Printable(err.Error(), 1000),
	})
}

// isSocketWanted reports whether a socket is asked for: by its flag, or by systemd.
func (p *program) isSocketWanted(flag string) bool {
	return p.String(flag) != "" || p.passed[flag] != nil
}

// listenAt returns a Unix socket: the one that systemd passed, or a new one.
func (p *program) listenAt(flag, path string, mode os.FileMode) (net.Listener, error) {
	if l := p.passed[flag]; l != nil {
		return l, nil
	}
	return daemon.Listen(p.Context.Context, path, mode)
}

// listen opens a TCP port, or takes the one that systemd opened.
func (p *program) listen(flag string) (net.Listener, error) {
	if l := p.passed[flag]; l != nil {
		return l, nil
	}
	l, err := new(net.ListenConfig).Listen(p.Context.Context, "tcp", p.String(flag))
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	return l, nil
}

// The permissions of the sockets: who asks is looked at besides.
const (
	privateMode = 0o600
	publicMode  = 0o666
)

// doorOf lets a program's administrators in before others.
func doorOf(p *program) daemon.Door {
	return daemon.Door{Full: p.access.IsAdmin, Refused: p.refusals.logDroppedConnection}
}

// serveAt adds a listener that is served until the end, to whom a door lets in.
func (p *program) serveAt(l net.Listener, h http.Handler, door daemon.Door) {
	p.closers = append(p.closers, func() error {
		_ = l.Close() // serving has closed it, if it came to that
		return nil
	})
	p.loops = append(p.loops, func(ctx context.Context) {
		serve := daemon.Serve
		if l.Addr().Network() == "unix" {
			serve = func(ctx context.Context, l net.Listener, h http.Handler, door daemon.Door) error {
				return daemon.ServeSocket(ctx, l, publicMode, h, door)
			}
		}
		if err := serve(ctx, l, h, door); err != nil {
			p.fail(fmt.Errorf("nobody is answered at %s any more: %w", l.Addr(), err))
		}
	})
}
