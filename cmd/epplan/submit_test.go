package main

import (
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/testkit/commandtest"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/slurm/hooks"
	"github.com/epplan/epplan/slurm/install"
)

// aSubmission is what job_submit.lua says, as an argument.
var aSubmission = hex.EncodeToString([]byte(`{"v":1,"kind":"batch","uid":1}`))

// serveSubmit answers at a socket until the test ends.
func serveSubmit(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sub") //nolint:usetesting // socket paths are short
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: answer, ReadHeaderTimeout: time.Second}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close(); <-done; _ = os.RemoveAll(dir) })
	return socket
}

// hang never answers.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// The bound is 80 ms; a test machine may be busy with something else.
func TestSubmitEndsSoonWhateverEPDDoes(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"hangs":   hang,
		"garbage": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("\x00{\xff")) },
		"refuses": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
		"drips": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, " ")
				_ = http.NewResponseController(w).Flush()
				<-time.After(time.Millisecond)
			}
		},
		"floods": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			socket := serveSubmit(t, answer)
			commandtest.InTime(t, submitTimeout+400*time.Millisecond, func() {
				code, stdout, stderr := inProcess(t, submitName, "--socket", socket, "--hex", aSubmission)
				if code == terminal.ExitDone || code == terminal.ExitInterrupted || stdout != "" ||
					!strings.HasPrefix(stderr, "error: ") {
					t.Errorf("status %d, %q, %q", code, stdout, stderr)
				}
			})
		})
	}
}

// asLua runs job_submit.lua's module in a Lua without luasocket, with this
// program as epplan, and with further arguments of it.
func asLua(t *testing.T, socket, further string) string {
	t.Helper()
	lua, err := exec.LookPath("lua5.1")
	shareddata.Need(t, err == nil, "lua5.1 isn't installed: run scripts/test-packages.sh")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, "epplan")); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "wrapper")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nexec "+dir+"/epplan \"$@\" "+further+"\n"),
		0o755); err != nil {
		t.Fatal(err)
	}
	module, err := install.LuaModule("/etc/slurm", socket, program)
	if err != nil {
		t.Fatal(err)
	}
	//nolint:lll // a program
	main := `
slurm = { NO_VAL = 4294967294, log_info = function(f, ...) print("log", string.format(f, ...)) end, log_user = function(f, ...) print("user", string.format(f, ...)) end }
local loader = _G.require
_G.require = function(name) if name:match("^socket") then error("not installed") end return loader(name) end
local hook = dofile("` + filepath.Join(dir, "epplan.lua") + `")
for i = 1, 3 do
  local jd = { name = "a'\n\"\255\0b", comment = string.rep("$(reboot)\0\255", 100000), admin_comment = "site", script = "#!/bin/sh", tres_per_node = "gres:gpu:1" }
  hook.submit(jd, 1000)
  print(jd.admin_comment)
end`
	for name, text := range map[string]string{"epplan.lua": module, "main.lua": main} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), lua, filepath.Join(dir, "main.lua"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

func TestJobSubmitWithoutLuaSocketAsksByThisProgram(t *testing.T) {
	got := make(chan hooks.Submission, 3)
	socket := serveSubmit(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == epdapi.PathSubmit {
			if s, err := hooks.DecodeSubmission(r.Body); err == nil {
				got <- s
			}
		}
		_, _ = io.WriteString(w,
			`{"v":1,"admin_comment_hex":"`+hex.EncodeToString([]byte("site;epplan:t1"))+`"}`)
	})
	out := asLua(t, socket, "--within 9s")
	if strings.Count(out, "site;epplan:t1\n") != 3 || len(got) != 3 {
		t.Fatalf("%d arrived: %s", len(got), out)
	}
	s := <-got
	if s.UID != 1000 || s.Name != "a'\n\"\xff\x00b" ||
		!strings.HasPrefix(string(s.Comment), "$(reboot)\x00\xff$(") || s.Script != "" || s.Kind != "batch" {
		t.Errorf("%+v", s)
	}
	if hung := asLua(t, serveSubmit(t, hang), ""); strings.Count(hung, "site\n") != 3 ||
		strings.Count(hung, "log\t") != 1 {
		t.Errorf("beside a hung epd: %s", hung)
	}
}
