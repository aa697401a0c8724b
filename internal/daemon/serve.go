package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/slurm"
)

// The bounds of a connection.
const (
	headerBound  = time.Second
	requestBound = 15 * time.Second
)

// Listen opens a socket with the permissions given, in place of one that nobody
// serves any more. It is an error if another daemon does.
func Listen(ctx context.Context, path string, mode os.FileMode) (net.Listener, error) {
	var dialer net.Dialer
	ctx, cancel := context.WithTimeout(ctx, headerBound)
	defer cancel()
	if c, err := dialer.DialContext(ctx, "unix", path); err == nil {
		_ = c.Close()
		return nil, fmt.Errorf("another epd listens at %s", path)
	}
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&os.ModeSocket == 0 {
			return nil, fmt.Errorf("%s is in the way and no socket", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	old := unix.Umask(0o177)
	l, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	unix.Umask(old)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, mode); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Serve answers hooks and people at a socket until the context ends.
func (d *Daemon) Serve(ctx context.Context, l net.Listener) error {
	return d.serve(ctx, l, d.Handler())
}

// ServeSubmissions answers job_submit at a socket of its own: slurmctld runs as
// Slurm's user, who may ask for nothing else.
func (d *Daemon) ServeSubmissions(ctx context.Context, l net.Listener) error {
	mux := http.NewServeMux()
	mux.Handle("POST "+epdapi.PathSubmit, d.options.Records)
	return d.serve(ctx, l, d.guarded(mux))
}

func (d *Daemon) serve(ctx context.Context, l net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerBound,
		ReadTimeout:       requestBound,
		WriteTimeout:      requestBound,
		MaxHeaderBytes:    16 << 10,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, peerKey{}, peerOf(c))
		},
	}
	stopped := context.AfterFunc(ctx, func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), headerBound)
		defer cancel()
		_ = server.Shutdown(closing)
	})
	defer stopped()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// peerKey is where a connection's context has its peer.
type peerKey struct{}

// nobody is a peer that isn't known.
const nobody = -1

// peerOf is the uid at the other end of a Unix socket, as the kernel says.
func peerOf(c net.Conn) int64 {
	conn, ok := c.(*net.UnixConn)
	if !ok {
		return nobody
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return nobody
	}
	uid := int64(nobody)
	err = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			uid = int64(cred.Uid)
		}
	})
	if err != nil {
		return nobody
	}
	return uid
}

// trusted tells whether a request's peer may call hooks and restore.
func (d *Daemon) trusted(r *http.Request) bool {
	uid, ok := r.Context().Value(peerKey{}).(int64)
	if !ok || uid == nobody {
		return false
	}
	return uid == 0 || uid == int64(os.Geteuid()) || slices.Contains(d.options.Allowed, uint32(uid)) //nolint:gosec // a uid
}

// Handler answers requests. Without a Unix socket below it refuses them all.
func (d *Daemon) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+epdapi.PathProlog, d.hook(slurm.Prolog, d.prolog))
	mux.HandleFunc("POST "+epdapi.PathEpilog, d.hook(slurm.Epilog, d.epilog))
	mux.HandleFunc("POST "+epdapi.PathRestore, d.restore)
	mux.HandleFunc("GET "+epdapi.PathStatus, func(w http.ResponseWriter, r *http.Request) {
		d.reply(w, http.StatusOK, d.Status(r.Context()))
	})
	if d.options.Records != nil {
		for _, path := range []string{"jobs", "jobs/{id}", "models", "savings"} {
			mux.Handle("GET /v1/"+path, d.options.Records)
		}
	}
	return d.guarded(mux)
}

// guarded refuses everybody but those that are trusted.
func (d *Daemon) guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !d.trusted(r) {
			d.reply(w, http.StatusForbidden, epdapi.Fault{Error: "only root and Slurm's user may ask"})
			return
		}
		h.ServeHTTP(w, r)
	})
}

// hook answers a Prolog or an Epilog. One that its caller has given up goes on:
// what it began must not stay half done.
func (d *Daemon) hook(kind slurm.Hook, do func(context.Context, *slurm.HookEvent) slurm.HookAnswer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		e, err := slurm.DecodeHookEvent(http.MaxBytesReader(w, r.Body, slurm.MaxMessage))
		if err == nil && e.Kind != kind {
			err = fmt.Errorf("a %s at the path of a %s", e.Kind, kind)
		}
		if err != nil {
			d.reply(w, http.StatusBadRequest, epdapi.Fault{Error: err.Error()})
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), requestBound)
		defer cancel()
		d.reply(w, http.StatusOK, do(ctx, &e))
	}
}

func (d *Daemon) restore(w http.ResponseWriter, r *http.Request) {
	var q epdapi.RestoreRequest
	in := json.NewDecoder(http.MaxBytesReader(w, r.Body, slurm.MaxMessage))
	in.DisallowUnknownFields()
	if err := in.Decode(&q); err != nil {
		d.reply(w, http.StatusBadRequest, epdapi.Fault{Error: err.Error()})
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), restoreBound)
	defer cancel()
	report, err := d.options.Agent.Restore(ctx, "an administrator gave the clocks back", q.GPUs...)
	d.trouble(err)
	a := epdapi.RestoreAnswer{GPUs: []epdapi.RestoredGPU{}, Notes: report.Notes, Clean: err == nil && report.Clean()}
	for _, g := range report.GPUs {
		one := epdapi.RestoredGPU{UUID: g.UUID, Fate: string(g.Fate), Note: g.Note}
		if g.Err != nil {
			one.Error = g.Err.Error()
		}
		a.GPUs = append(a.GPUs, one)
	}
	d.reply(w, http.StatusOK, a)
}

func (d *Daemon) reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		d.options.Log.Debug("answer not delivered", "error", err)
	}
}
