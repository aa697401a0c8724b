package main

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/testkit/browsertest"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm/hooks"
)

// withEPD runs tests beside an epd that always says the same, at the socket
// that EPPLAN_SOCKET names.
type withEPD struct{ m *testing.M }

// Run starts it and runs the tests.
func (w withEPD) Run() int {
	dir, err := os.MkdirTemp("", "epd")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	socket := filepath.Join(dir, "epd.sock")
	l, err := net.Listen("unix", socket) //nolint:noctx // for as long as the tests run
	if err != nil {
		panic(err)
	}
	server := &http.Server{Handler: sayings(), ReadHeaderTimeout: time.Second}
	go server.Serve(l)   //nolint:errcheck // ends with the tests
	defer server.Close() //nolint:errcheck // as above
	for _, name := range []string{"EPPLAN_SOCKET", "EPPLAN_SUBMIT_SOCKET"} {
		if err := os.Setenv(name, socket); err != nil {
			panic(err)
		}
	}
	return browsertest.Run(w.m)
}

// sayings returns the fake's answers.
func sayings() http.Handler {
	since := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	const uuid = "GPU-374708ff-f771-9dd5-979e-c875d56cd228"
	answers := map[string]any{
		"GET " + epdapi.PathStatus: epdapi.Status{
			Version: "1.0", Role: "both", Node: "gpu01", Started: since,
			GPUs: []epdapi.GPU{
				{
					UUID: uuid, Bus: "00000000:17:00.0", Model: "V100", LockedCore: 1087,
					Setting: dvfsmodel.Setting{Core: 1087, Mem: 877}, Power: 143,
				},
				{
					UUID: "GPU-7c3ccd10-bb7e-c37b-46d3-7926ae627426", Bus: "00000000:19:00.0", Model: "V100",
					Minor: 1, Setting: dvfsmodel.Setting{Core: 802, Mem: 877}, Power: 30,
				},
			},
			Runs: []epdapi.Run{{
				ID: "R1", Job: 4711, GPUs: []string{uuid}, Setting: dvfsmodel.Setting{Core: 1087},
				Started: since.Add(time.Hour),
			}},
			Totals: &epdapi.Totals{Decisions: 12, Outcomes: 11, Models: 3},
			Controller: &epdapi.ControllerStatus{
				Cluster: "alpha", Started: since, ConfigVersion: "5f1c09d2a7b3", Mode: live.Advise,
				Modes: map[string]live.Mode{"gpu": live.Enforce}, HoldOut: 0.05, Jobs: 40, Tokens: 9,
				Decided: 1, Models: 3,
				Decisions: 12, Applied: 7, HeldOut: 1, Outcomes: 11,
			},
			Troubles: []epdapi.Problem{},
		},
		"POST " + epdapi.PathRestore: epdapi.RestoreAnswer{
			GPUs: []epdapi.RestoredGPU{{UUID: uuid, Result: "restored"}}, Clean: true,
		},
		"POST " + epdapi.PathProlog: hooks.Answer{
			Version: hooks.ProtocolVersion, Applied: true, Run: "R1", Reason: "enforce: the cheapest in time",
		},
		"POST " + epdapi.PathEpilog: hooks.Answer{Version: hooks.ProtocolVersion, Run: "R1"},
		"POST " + epdapi.PathSubmit: hooks.SubmitAnswer{
			Version: hooks.ProtocolVersion, AdminComment: "epplan:t1",
		},
		"POST " + epdapi.PathPower: struct{}{},
	}
	mux := http.NewServeMux()
	liveSayings(mux)
	historySayings(mux)
	for pattern, answer := range answers {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(answer)
		})
	}
	return mux
}
