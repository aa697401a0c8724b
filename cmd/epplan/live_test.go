package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/slurm/hooks"
)

// listen serves a handler at a socket.
func listen(t *testing.T, path string, handler http.Handler) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Second}
	go server.Serve(l) //nolint:errcheck // ends with the test
	t.Cleanup(func() { _ = server.Close() })
}

func TestAWrongConfigurationIsNamedFaultByFault(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	faults := []string{
		"epplan.toml:3:1: unknown key hold_outt in [live], did you mean hold_out?",
		"epplan.toml:9:8: live.mode is \"\x1b[2J\"",
	}
	listen(t, socket, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != epdapi.PathReload {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(epdapi.ErrorAnswer{Error: "the settings in force stay: …", Faults: faults})
	}))
	code, stdout, stderr := inProcess(t, "reload", "--socket", socket)
	want := "error: " + faults[0] + "\nerror: epplan.toml:9:8: live.mode is \"\\x1b[2J\"\n" +
		"hint: nothing has changed: the configuration that was in force stays\n"
	if code != terminal.ExitFailed || stdout != "" || stderr != want {
		t.Errorf("exit status %d, %q\n%s", code, stdout, stderr)
	}
}

func TestWhatEpdRefusesIsOneSafeLine(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	answer := ""
	status := http.StatusForbidden
	listen(t, socket, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	for _, tc := range []struct {
		status       int
		answer, want string
	}{
		{
			http.StatusForbidden, `{"error":"not allowed\u001b[2J\nerror: forged"}`,
			`error: /v1/savings: epd refuses: not allowed\x1b[2J / error: forged`,
		},
		{http.StatusServiceUnavailable, `<html>`, "error: /v1/savings: epd answers 503 Service Unavailable"},
		{http.StatusOK, "[1", "error: /v1/savings: the answer makes no sense: unexpected end of JSON input"},
		{
			http.StatusOK, "{\"gpu\":\"\x1b\"}",
			`error: /v1/savings: the answer makes no sense: invalid character '\x1b' in string literal`,
		},
	} {
		status, answer = tc.status, tc.answer
		code, stdout, stderr := inProcess(t, "savings", "--socket", socket)
		if code != terminal.ExitFailed || stdout != "" || strings.TrimSpace(stderr) != tc.want {
			t.Errorf("%d %q: exit status %d, %q\n%s", tc.status, tc.answer, code, stdout, stderr)
		}
	}
}

// A script may be of any size: what counts, and what is sent, is its beginning,
// as in job_submit.lua.
func TestOnlyTheBeginningOfAScriptIsSent(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	var got hooks.Submission
	listen(t, socket, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := hooks.DecodeSubmission(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = s
		_ = json.NewEncoder(w).Encode(epdapi.Estimate{Reason: "nothing is known"})
	}))
	begin := []byte("#!/bin/sh\n#SBATCH --gpus=2\ntrain\n\xff\xfe" + strings.Repeat("x", 100_000))
	huge := filepath.Join(dir, "huge.sh")
	if err := os.WriteFile(huge, begin, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(huge, 10<<30); err != nil { // a hole
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "a.out")
	if err := os.WriteFile(binary, append([]byte("\x7fELF\x00\x01"), bytes.Repeat([]byte{0}, 1<<20)...),
		0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := inProcess(t, "estimate", huge, "--socket", socket)
	if code != terminal.ExitDone || !strings.Contains(stdout, "nothing is known") || stderr != "" {
		t.Errorf("exit status %d: %s%s", code, stdout, stderr)
	}
	if string(got.Script) != string(begin[:hooks.SentScript]) || got.TRESPerJob != "gres/gpu:2" ||
		got.UID != uint32(os.Getuid()) {
		t.Errorf("%d bytes of script, %+q, uid %d", len(got.Script), got.TRESPerJob, got.UID)
	}
	if code, _, stderr = inProcess(t, "estimate", binary, "--socket", socket); code != terminal.ExitDone ||
		!strings.Contains(stderr, "sbatch refuses it") || len(got.Script) != hooks.SentScript {
		t.Errorf("a binary: exit status %d, %d bytes: %s", code, len(got.Script), stderr)
	}
}

func TestTheFirstSocketThatAnswersIsAsked(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"b", "c"} {
		listen(t, at(name), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(epdapi.Status{Node: name})
		}))
	}
	if err := os.WriteFile(at("file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		sockets []string
		want    string
	}{
		{[]string{at("none"), at("file"), at("c"), at("b")}, "c"},
		{[]string{at("b"), at("c")}, "b"},
	} {
		s, err := epdapi.New(tc.sockets...).Status(t.Context())
		if err != nil || s.Node != tc.want {
			t.Errorf("%v: %+v, %v", tc.sockets, s, err)
		}
	}
}

func TestSparklinesShowGapsAndStayShort(t *testing.T) {
	var s epdapi.Series
	s.IntervalS = 60
	if line, _ := sparkline(&s); line != "" {
		t.Errorf("nothing is %q", line)
	}
	fake := fakeOutcome()
	for range 6 {
		s.Values = append(s.Values, fake.Series.Values...)
	}
	line, step := sparkline(&s)
	if n := len([]rune(line)); n > 64 || n < 32 || step != 300 {
		t.Errorf("%d characters of %v s: %q", n, step, line)
	}
}

func TestTheAimIsSaidInTheUnitOfItsWeights(t *testing.T) {
	for want, o := range map[string]epdapi.Objective{
		"least energy that keeps the limits": {EnergyWeight: 1},
		"least 1 × joules + 50 × seconds that keeps the limits": {
			EnergyWeight: 1, TimeWeight: 50,
		},
		"least cost at 0.27 EUR a kWh that keeps the limits": {
			EnergyWeight: 0.27 / 3.6e6, Currency: "EUR",
		},
		"least cost at 0.27 EUR a kWh and 2 EUR an hour of a GPU that keeps the limits": {
			EnergyWeight: 0.27 / 3.6e6, TimeWeight: 2.0 / 3600, Currency: "EUR",
		},
		`least cost at 0.27 \x1b[2J a kWh that keeps the limits`: {
			EnergyWeight: 0.27 / 3.6e6, Currency: "\x1b[2J",
		},
	} {
		if got := objectiveText(&o); got != want {
			t.Errorf("%+v: %q, want %q", o, got, want)
		}
	}
}
