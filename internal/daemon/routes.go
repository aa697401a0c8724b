package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/slurm/hooks"
)

// Routes adds what hooks and administrators may ask an agent. Only those with
// full access, by a Unix socket, get an answer.
func (d *AgentServer) Routes(mux *http.ServeMux) {
	handle := func(pattern string, h http.HandlerFunc) {
		mux.Handle(pattern, d.options.Access.RequireAdmin(Peer, h))
	}
	handle("POST "+epdapi.PathProlog, d.hook(hooks.Prolog, d.prolog))
	handle("POST "+epdapi.PathEpilog, d.hook(hooks.Epilog, d.epilog))
	handle("POST "+epdapi.PathRestore, d.restore)
	handle("GET "+epdapi.PathStatus, func(w http.ResponseWriter, r *http.Request) {
		reply(w, http.StatusOK, d.Status(r.Context()))
	})
}

// hook answers a Prolog or an Epilog. One that its caller has given up goes on:
// what it began must not stay half done.
func (d *AgentServer) hook(
	kind hooks.Hook, do func(context.Context, *hooks.Event) hooks.Answer,
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		e, err := hooks.DecodeEvent(http.MaxBytesReader(w, r.Body, hooks.MaxMessage))
		if err == nil && e.Kind != kind {
			err = fmt.Errorf("a %s at the path of a %s", e.Kind, kind)
		}
		if err != nil {
			reply(w, http.StatusBadRequest, epdapi.ErrorAnswer{Error: err.Error()})
			return
		}
		end, ok := d.beginHook(kind)
		if !ok {
			reply(w, http.StatusOK, hookAnswer(false, "", stopping))
			return
		}
		defer end()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), requestBound)
		defer cancel()
		began := time.Now()
		a := do(ctx, &e)
		if d.options.OnHook != nil {
			d.options.OnHook(kind, time.Since(began))
		}
		reply(w, http.StatusOK, a)
	}
}

func (d *AgentServer) restore(w http.ResponseWriter, r *http.Request) {
	var q epdapi.RestoreRequest
	in := json.NewDecoder(http.MaxBytesReader(w, r.Body, hooks.MaxMessage))
	in.DisallowUnknownFields()
	if err := in.Decode(&q); err != nil {
		reply(w, http.StatusBadRequest, epdapi.ErrorAnswer{Error: err.Error()})
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), restoreBound)
	defer cancel()
	report, err := d.options.Agent.Restore(ctx, "an administrator gave the clocks back", q.GPUs...)
	d.problems.note(err)
	a := epdapi.RestoreAnswer{
		GPUs: []epdapi.RestoredGPU{}, Notes: report.Notes, Clean: err == nil && report.Clean(),
	}
	for _, g := range report.GPUs {
		one := epdapi.RestoredGPU{UUID: g.UUID, Result: string(g.Result), Note: g.Note}
		if g.Err != nil {
			one.Error = g.Err.Error()
		}
		a.GPUs = append(a.GPUs, one)
	}
	reply(w, http.StatusOK, a)
}
