package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/daemon"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/pause"
	"github.com/epplan/epplan/internal/web"
	"github.com/epplan/epplan/statedir"
)

// serve runs epd until the context ends.
func serve(c *cli.Context, role string, stderr io.Writer) error {
	if c.Args().Present() {
		return usagef("no arguments are expected, got %q", c.Args().First())
	}
	p := &program{
		Context: c, log: newLog(stderr), role: role, started: time.Now(),
		reloads: make(chan os.Signal, 1),
	}
	var err error
	if p.passed, err = systemdSockets(); err != nil {
		return err
	}
	if err := p.checkFlags(); err != nil {
		return err
	}
	if terminal.IsDryRun(c) {
		steps, err := p.dryRunSteps()
		if err != nil {
			return err
		}
		_, err = terminal.Announce(c, steps...)
		return err
	}
	err = p.runOwned()
	// By one whose clocks aren't ours.
	if err == nil || role == roleController || errors.Is(err, daemon.ErrTaken) {
		return err
	}
	// The agent may not have come as far as giving back old clocks.
	restoring := restoreJournal(c, filepath.Join(c.String("state"), "journal"), stderr)
	if errors.Is(restoring, err) { // of the same folder
		return restoring
	}
	return errors.Join(err, restoring)
}

// runOwned makes the state folder and the socket this process's own, and runs until the
// context ends.
func (p *program) runOwned() error {
	if err := statedir.Make(p.String("state")); err != nil {
		return err
	}
	disown, err := acquireStateFolder(p)
	if err != nil || disown == nil {
		return err
	}
	defer disown()
	l, err := p.listenAt("socket", p.socket(), privateMode)
	if err != nil {
		return err
	}
	defer l.Close()                          //nolint:errcheck // serving has closed it
	signal.Notify(p.reloads, syscall.SIGHUP) // from now on: it ends nothing in any role
	defer signal.Stop(p.reloads)
	return p.run(l)
}

// lockState makes the state folder this process's own, in each part that its role plays. epd ends if another
// one has it in spite of that.
func lockState(p *program) (release func(), err error) {
	parts := []string{p.role}
	if p.role == roleBoth {
		parts = []string{roleController, roleAgent}
	}
	var locks []*daemon.StateLock
	release = func() {
		for _, each := range locks {
			each.Release()
		}
	}
	for _, part := range parts {
		one, err := daemon.LockState(p.String("state"), part)
		if err != nil {
			release()
			return nil, err
		}
		locks = append(locks, one)
	}
	p.loops = append(p.loops, func(ctx context.Context) {
		for pause.For(ctx, renewLocks) == nil {
			for _, each := range locks {
				if err := each.Renew(); errors.Is(err, daemon.ErrTaken) {
					p.fail(err)
					return
				}
			}
		}
	})
	return release, nil
}

// renewLocks is how often it is looked whether the locks of the state folder are there.
var renewLocks = 5 * time.Second

// checkFlags refuses what doesn't go together.
func (p *program) checkFlags() error {
	switch {
	case p.role != roleBoth && p.role != roleController && p.role != roleAgent:
		return usagef("--role %q, want both, controller or agent", p.role)
	case p.String("auth") != authMunge && p.String("auth") != authKeys:
		return usagef("--auth %q, want munge or keys", p.String("auth"))
	case p.role == roleAgent && len(controllerHosts(p.Context)) == 0:
		return usagef("an agent needs --controller HOST:PORT")
	case p.role != roleAgent && p.String("controller") != "":
		return usagef("--controller is for agents, this is --role %s", p.role)
	case p.role == roleAgent &&
		(p.isSocketWanted("listen") || p.isSocketWanted("submit-socket") || p.isSocketWanted("web")):
		return usagef("an agent has no --listen, no --submit-socket and no --web, it answers at its " +
			"Unix socket alone")
	case p.Bool("standby") && p.role != roleController:
		return usagef("--standby is for controllers, this is --role %s", p.role)
	case p.Bool("standby") && len(p.passed) > 0:
		return usagef("--standby doesn't go with sockets that systemd opens: who asks there would wait for " +
			"a controller that stands by")
	case p.role == roleController && !p.isSocketWanted("listen"):
		return usagef("a controller needs --listen ADDRESS:PORT for its agents")
	}
	return nil
}

// socket returns where hooks and administrators are answered.
func (p *program) socket() string {
	switch {
	case p.passed["socket"] != nil:
		return p.passed["socket"].Addr().String()
	case p.String("socket") != "":
		return p.String("socket")
	case p.role == roleController:
		return epdapi.ControllerSocket
	}
	return epdapi.AgentSocket
}

// run joins the parts that the role has and serves until the context ends.
func (p *program) run(l net.Listener) (err error) {
	defer func() {
		for _, closer := range slices.Backward(p.closers) {
			err = errors.Join(err, closer())
		}
	}()
	useTwoProcs()
	halveGarbage()
	p.access, p.metrics = &daemon.Access{}, p.newMetrics()
	p.refusals.log, p.refusals.count = p.log, p.metrics.Failed
	p.allowUsers()
	p.loops = append(p.loops, p.reload)
	if p.role != roleAgent {
		if err := p.startController(); err != nil {
			return err
		}
	}
	if p.role != roleController {
		if err := p.joinNode(); err != nil {
			return err
		}
	}
	if err := p.openMetrics(); err != nil {
		return err
	}
	var group sync.WaitGroup
	defer group.Wait()
	ctx, cancel := context.WithCancelCause(p.Context.Context)
	defer cancel(nil)
	p.fail = cancel
	for _, loop := range p.loops {
		group.Go(func() { loop(ctx) })
	}
	notify(p.log, systemd.SdNotifyReady)
	p.log.Info("ready", "role", p.role, "socket", p.socket())
	err = daemon.ServeSocket(ctx, l, privateMode, p.handler(), doorOf(p))
	notify(p.log, systemd.SdNotifyStopping)
	if cause := context.Cause(ctx); p.Err() == nil {
		err = errors.Join(err, cause) // not told to end
	}
	return err
}

// useTwoProcs has epd on one core run two goroutines at a time: while one reads a long list of Slurm's, or
// trains predictions, nothing but the kernel's scheduler makes room at once for one that is asked something.
// Go's own lets a goroutine work for 10 ms, and looks as often whether a request has come.
func useTwoProcs() {
	if runtime.GOMAXPROCS(0) == 1 && os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(2)
	}
}

// halveGarbage has half as much garbage as usual, in percent of what is kept: of a long queue that is much
// for a while, and collecting it costs little.
func halveGarbage() {
	const percent = 50
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// handler answers at the socket of hooks and administrators.
func (p *program) handler() http.Handler {
	mux := http.NewServeMux()
	if p.control != nil {
		p.controllerServer().Routes(mux, daemon.Peer)
		mux.Handle("/", p.pages())
	}
	if p.node != nil {
		p.node.Routes(mux) // with a status that has the GPUs too
	} else {
		p.controllerServer().Status(mux, daemon.Peer)
	}
	return web.Guard(p.access.RequireAdmin(daemon.Peer, mux), p.webHosts)
}

// notify tells systemd, if it started this.
func notify(log *slog.Logger, state string) {
	if _, err := systemd.SdNotify(false, state); err != nil {
		log.Warn("systemd can't be told", "error", err)
	}
}
