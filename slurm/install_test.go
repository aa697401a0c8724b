package slurm_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/epplan/epplan/slurm"
)

// luac checks a text with Lua 5.1's compiler; the test is skipped without it.
func luac(t *testing.T) func(name, text string) error {
	t.Helper()
	binary, err := exec.LookPath("luac5.1")
	if err != nil {
		t.Skip("luac5.1 is not installed")
	}
	return func(name, text string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, binary, "-p", "-")
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %s", name, strings.TrimSpace(string(out)))
		}
		return nil
	}
}

const siteScript = `-- the site's own
local limit = 10
function slurm_job_submit(jd, parts, who) -- checks accounts
  if jd.account == nil then return slurm.ERROR end
  return slurm.SUCCESS
end
function slurm_job_modify(jd, rec, parts, who) return slurm.SUCCESS end
return slurm.SUCCESS
`

func site(check func(name, text string) error) slurm.Site {
	return slurm.Site{Dir: "/etc/slurm", Socket: "/run/epplan/epd.sock", Binary: "/usr/bin/epplan", CheckLua: check, Conf: "ClusterName=c\n"}
}

func stepFor(t *testing.T, p slurm.InstallPlan, file, add string) slurm.Step {
	t.Helper()
	for _, s := range p.Steps {
		if s.File == file && strings.Contains(s.Add, add) {
			return s
		}
	}
	t.Fatalf("no step for %s %s in %+v", file, add, p.Steps)
	return slurm.Step{}
}

func TestTheSitesScriptGainsOneLineAndKeepsTheRest(t *testing.T) {
	s := site(luac(t))
	s.Script, s.HasScript = siteScript, true
	p, err := slurm.PlanInstall(s)
	if err != nil {
		t.Fatal(err)
	}
	step := stepFor(t, p, "/etc/slurm/job_submit.lua", "EPPLAN")
	if step.New || strings.Replace(step.Text, step.Add+"\n", "", 1) != siteScript || strings.Count(step.Text, "EPPLAN.submit(jd, who)") != 1 || step.Undo == "" {
		t.Errorf("%+v", step)
	}
	s.Script = step.Text
	again, err := slurm.PlanInstall(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range again.Steps {
		if st.File == "/etc/slurm/job_submit.lua" {
			t.Error("the line is added twice")
		}
	}
}

func TestAScriptThatDoesNotLoadOrCannotBeReadStopsThePlan(t *testing.T) {
	check := luac(t)
	for name, script := range map[string]string{
		"syntax error":  "function slurm_job_submit(a, b, c)\n  if\nend\n",
		"no function":   "return slurm.SUCCESS\n",
		"two functions": siteScript + "",
		"one line":      "function slurm_job_submit(a, b, c) return 0 end\nreturn 0\n",
		"varargs":       "function slurm_job_submit(...)\n return 0\nend\n",
	} {
		s := site(check)
		s.Script, s.HasScript = script, true
		if name == "two functions" {
			s.Script = "function slurm_job_submit(a, b, c)\nend\nfunction slurm_job_submit(a, b, c)\nend\n"
		}
		if p, err := slurm.PlanInstall(s); err == nil {
			t.Errorf("%s: %+v", name, p.Steps)
		}
	}
	s := site(func(string, string) error { return errors.New("no") })
	if _, err := slurm.PlanInstall(s); err == nil {
		t.Error("planned although nothing loads")
	}
	s = site(check)
	s.Socket = `/run/x"; os.execute("reboot")--`
	if _, err := slurm.PlanInstall(s); !errors.Is(err, slurm.ErrInvalid) {
		t.Error(err)
	}
}

func TestSlurmConfIsExtendedAndNothingIsReplacedUnnamed(t *testing.T) {
	s := site(func(string, string) error { return nil })
	s.Conf = "JobSubmitPlugins=defaults # ours\nProlog=/etc/slurm/prolog.sh\nEpilog=/etc/slurm/epilog.d/*\nPrologFlags=X11,Alloc\n"
	p, err := slurm.PlanInstall(s)
	if err != nil {
		t.Fatal(err)
	}
	conf := "/etc/slurm/slurm.conf"
	if st := stepFor(t, p, conf, "JobSubmitPlugins"); st.Add != "JobSubmitPlugins=defaults,lua" || st.Drop != "JobSubmitPlugins=defaults" || !strings.Contains(st.Undo, "line 1") {
		t.Errorf("%+v", st)
	}
	if st := stepFor(t, p, conf, "Prolog="); st.Add != "Prolog=/etc/slurm/epplan-prolog.d/*" || st.Drop != "Prolog=/etc/slurm/prolog.sh" {
		t.Errorf("%+v", st)
	}
	if st := stepFor(t, p, "/etc/slurm/epplan-prolog.d/10-site", ""); !strings.Contains(st.Text, "exec /etc/slurm/prolog.sh") {
		t.Errorf("%+v", st)
	}
	if st := stepFor(t, p, "/etc/slurm/epilog.d/90-epplan", ""); !strings.HasSuffix(st.Text, "exit 0\n") || !strings.Contains(st.Text, "/usr/bin/epplan epilog <") {
		t.Errorf("%+v", st)
	}
	for _, st := range p.Steps {
		if strings.HasPrefix(st.Add, "PrologFlags") || strings.HasPrefix(st.Add, "Epilog=") || st.Undo == "" {
			t.Errorf("%+v", st)
		}
	}
}

// luaRun loads epplan.lua with a stand-in for slurmctld's slurm table, submits
// twice and prints what came of it.
func luaRun(t *testing.T, socket, prelude string) string {
	t.Helper()
	lua, err := exec.LookPath("lua5.1")
	if err != nil {
		t.Skip("lua5.1 is not installed")
	}
	if exec.CommandContext(t.Context(), lua, "-e", `require "socket.unix"`).Run() != nil { //nolint:gosec // a fixed name
		t.Skip("lua-socket is not installed")
	}
	dir := t.TempDir()
	module, err := slurm.LuaModule("/etc/slurm", socket)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "epplan.lua"), module)
	writeFile(t, filepath.Join(dir, "main.lua"), `
slurm = { NO_VAL = 4294967294, SUCCESS = 0, log_info = function(f, ...) print("log", string.format(f, ...)) end, log_user = function(f, ...) print("user", string.format(f, ...)) end }
local s = require "socket"
`+prelude+`
for i = 1, 2 do
  local jd = { name = "a\n\"\255\0b", comment = "epplan:off", admin_comment = "site", script = "#!/bin/sh\n", time_limit = 90, tres_per_node = "gres:gpu:1", priority = 4294967294 }
  local t = s.gettime()
  local ok, err = pcall(function() EPPLAN = EPPLAN or dofile("`+dir+`/epplan.lua"); EPPLAN.submit(jd, 1000) end)
  print(i, tostring(jd.admin_comment), s.gettime() - t < 0.5 and "bounded" or "slow", err)
end`)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, lua, filepath.Join(dir, "main.lua")).CombinedOutput() //nolint:gosec // a fixed name
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// serve answers on a Unix socket and counts the requests.
func serve(t *testing.T, handler http.HandlerFunc) (string, func() int) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "epl") //nolint:usetesting // socket paths are short
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	n := 0
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		n++
		mu.Unlock()
		handler(w, r)
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close(); <-done; _ = os.RemoveAll(dir) })
	return socket, func() int { mu.Lock(); defer mu.Unlock(); return n }
}

func TestTheLuaHookCarriesAnyBytesAndSetsTheToken(t *testing.T) {
	var got slurm.Submission
	var failed error
	socket, count := serve(t, func(w http.ResponseWriter, r *http.Request) {
		s, err := slurm.DecodeSubmission(r.Body)
		got, failed = s, err
		merged, _ := slurm.MergeToken(string(s.Admin), "ab12")
		_, _ = fmt.Fprintf(w, `{"v":1,"admin_comment_hex":"%s","message_hex":"%s"}`, hex.EncodeToString([]byte(merged)), hex.EncodeToString([]byte("hello\nyou")))
	})
	out := luaRun(t, socket, "")
	if failed != nil || got.Name != "a\n\"\xff\x00b" || got.UID != 1000 || got.Kind != "batch" || got.TimeLimit != 90 || !got.WantsGPU() || got.Comment != "epplan:off" || got.Held || got.Script != "#!/bin/sh\n" {
		t.Errorf("%+v, %v", got, failed)
	}
	if strings.Count(out, "site;epplan:ab12\tbounded") != 2 || !strings.Contains(out, "user\thello you") || count() != 2 {
		t.Errorf("%d requests: %s", count(), out)
	}
}

func TestTheLuaHookFailsOpenWithABreaker(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	hung, count := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	})
	if out := luaRun(t, hung, ""); strings.Count(out, "site\tbounded") != 2 || strings.Count(out, "log\t") != 1 || count() != 1 {
		t.Errorf("hung: %d requests: %s", count(), out)
	}
	if out := luaRun(t, "/nonexistent/s", ""); strings.Count(out, "site\tbounded") != 2 || strings.Count(out, "log\t") != 1 {
		t.Errorf("nobody there: %s", out)
	}
	garbage, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"admin_comment_hex":"zz","message_hex":"6`))
	})
	if out := luaRun(t, garbage, ""); strings.Count(out, "site\tbounded") != 2 {
		t.Errorf("garbage: %s", out)
	}
	refusing, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	if out := luaRun(t, refusing, ""); strings.Count(out, "site\tbounded") != 2 || strings.Count(out, "log\t") != 1 {
		t.Errorf("refused: %s", out)
	}
	dropping, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"admin_comment_hex":"78"}`)) })
	if out := luaRun(t, dropping, ""); strings.Count(out, "site\tbounded") != 2 {
		t.Errorf("an answer that drops foreign text: %s", out)
	}
	if out := luaRun(t, hung, `package.loaded["socket.unix"] = nil; package.preload["socket.unix"] = function() error("not installed") end`); strings.Count(out, "site\tbounded") != 2 || !strings.Contains(out, "lua-socket is missing") {
		t.Errorf("without lua-socket: %s", out)
	}
	if out := luaRun(t, hung, `local real = dofile; dofile = function() return real("/nonexistent/epplan.lua") end`); strings.Count(out, "site\tbounded") != 2 || !strings.Contains(out, "cannot open") {
		t.Errorf("missing module: %s", out)
	}
}
