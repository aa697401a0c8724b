package main

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/testkit/hostiletest"
)

// fakeEPD answers about models at a socket, and notes what was chosen.
func fakeEPD(t *testing.T) (socket string, chosen *epdapi.ModelChoice) {
	t.Helper()
	chosen = &epdapi.ModelChoice{}
	key := record.WorkloadKey{Workload: "u1-abc", GPUModel: "V100"}
	chosenBy := epdapi.Chosen{
		By: "alice (token)", At: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC), Why: "it was better",
	}
	answer := func(w http.ResponseWriter, v any) {
		if err := json.NewEncoder(w).Encode(v); err != nil {
			t.Error(err)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+epdapi.PathModels, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("workload") {
		case "":
			answer(w, epdapi.ModelList{Models: []epdapi.ModelStatus{
				{
					WorkloadKey: key, Version: 4, Samples: 12, Missed: 1, Pinned: true,
					Note: "hostile \x1b[31m note", Chosen: chosenBy,
					LastJob: epdapi.LastJob{ID: 7, Name: "train \x1b[31m", User: "ada", Partition: "gpu"},
				},
				{
					WorkloadKey: record.WorkloadKey{Workload: "u2-def", GPUModel: "V100"},
					Note:        "missed the last 3 runs",
				},
			}})
		case key.Workload:
			answer(w, epdapi.ModelVersions{Versions: []epdapi.ModelVersion{
				{Model: record.Model{WorkloadKey: key, Version: 4, InUse: true}, Chosen: chosenBy},
				{Model: record.Model{WorkloadKey: key, Version: 3}},
			}})
		default:
			answer(w, epdapi.ModelVersions{})
		}
	})
	mux.HandleFunc("POST "+epdapi.PathModelsUse, func(w http.ResponseWriter, r *http.Request) {
		*chosen = epdapi.ModelChoice{}
		if err := json.NewDecoder(r.Body).Decode(chosen); err != nil {
			t.Error(err)
		}
		if chosen.Version > 4 {
			w.WriteHeader(http.StatusNotFound)
			answer(w, epdapi.ErrorAnswer{Error: "there is no version 9"})
			return
		}
		answer(w, epdapi.ModelStatus{WorkloadKey: key, Version: chosen.Version, Pinned: !chosen.Free})
	})
	socket = filepath.Join(t.TempDir(), "s")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(mux)
	server.Listener = l
	server.Start()
	t.Cleanup(server.Close)
	return socket, chosen
}

func TestModelsAreListedAndChosen(t *testing.T) {
	socket, chosen := fakeEPD(t)
	for _, test := range []struct {
		args []string
		code int
		want []string
	}{
		{
			[]string{"list"}, exitDone, []string{
				"u1-abc", "its own runs", "yes", "missed the last 3 runs", "none", "train", "ada", "gpu",
				"by alice (token), 2026-05-04",
			},
		},
		{
			[]string{"list", "--json"}, exitDone, []string{
				`"models": [`, `"pinned": true`, `"by": "alice (token)"`, `"name": "train`,
			},
		},
		{
			[]string{"list", "u1-abc", "V100"},
			exitDone,
			[]string{"version", "4", "3", "yes", "by alice (token), 2026-05-04"},
		},
		{[]string{"list", "u9-xyz", "V100"}, exitDone, []string{"no such model yet"}},
		{[]string{"list", "u1-abc"}, exitUsage, []string{"takes a workload and a GPU model"}},
		{
			[]string{"use", "--note", "it was better", "u1-abc", "V100", "3"},
			exitDone,
			[]string{"u1-abc", "3", "yes"},
		},
		{[]string{"use", "u1-abc", "V100", "0"}, exitDone, []string{"none"}},
		{[]string{"use", "--free", "u1-abc", "V100"}, exitDone, []string{"u1-abc"}},
		{[]string{"use", "u1-abc", "V100", "9"}, exitFailed, []string{"no version 9"}},
		{[]string{"use", "u1-abc", "V100", "-1"}, exitUsage, []string{"flag"}},
		{[]string{"use", "u1-abc", "V100", "newest"}, exitUsage, []string{"newest"}},
		{[]string{"use", "u1-abc", "V100"}, exitUsage, []string{"VERSION"}},
	} {
		var out, log text
		args := append([]string{"epd", "model", test.args[0], "--socket", socket}, test.args[1:]...)
		code := run(t.Context(), args, &out, &log)
		for _, want := range test.want {
			if all := out.String() + log.String(); code != test.code || !strings.Contains(all, want) ||
				strings.Contains(all, "\x1b") {
				t.Errorf("%q: status %d, want %d and %q:\n%s", test.args, code, test.code, want, all)
			}
		}
	}
	if want := (epdapi.ModelChoice{Workload: "u1-abc", GPUModel: "V100", Version: 9}); *chosen != want {
		t.Errorf("chosen %+v, want %+v", *chosen, want)
	}
	var out, log text
	if code := run(t.Context(), []string{"epd", "model", "list", "--socket", "/nowhere"}, &out, &log); code !=
		exitUnreachable {
		t.Errorf("status %d: %s", code, &log)
	}
}

func TestNoTextThatEpdPassesOnDoesAnything(t *testing.T) {
	socket, _ := fakeEPD(t)
	epd := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "epd"}) },
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}},
	}
	var spoiler *hostiletest.Spoiler
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket+"2")
	must(t, err)
	server := httptest.NewUnstartedServer(hostiletest.NewHandler(epd, &spoiler))
	server.Listener = l
	server.Start()
	defer server.Close()
	for _, command := range []string{"list", "list --json", "list u1-abc V100", "use u1-abc V100 3"} {
		words := strings.Fields(command)
		args := append([]string{"epd", "model", words[0], "--socket", socket + "2"}, words[1:]...)
		hostiletest.Places(1, func(s *hostiletest.Spoiler) {
			spoiler = s
			var out, log text
			if code := run(t.Context(), args, &out, &log); s.Place == 0 && (code != exitDone || s.Seen == 0) {
				t.Fatalf("%s: status %d, %d texts: %s", command, code, s.Seen, &log)
			}
			err := errors.Join(hostiletest.Plain(out.String(), words[len(words)-1]),
				hostiletest.Plain(log.String(), ""))
			if err != nil {
				t.Errorf("%s, place %d: %v", command, s.Place, err)
			}
		})
	}
}
