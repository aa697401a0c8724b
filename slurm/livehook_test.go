package slurm_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/epplan/epplan/slurm"
)

func TestTheLuaHookInsideARealSlurmctld(t *testing.T) {
	check := luac(t)
	socket, count := serve(t, func(w http.ResponseWriter, r *http.Request) {
		s, err := slurm.DecodeSubmission(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		merged, _ := slurm.MergeToken(string(s.Admin), "t-1")
		_, _ = fmt.Fprintf(w, `{"v":1,"admin_comment_hex":"%x"}`, merged)
	})
	hooks := filepath.Dir(socket)
	for path, mode := range map[string]os.FileMode{hooks: 0o755, socket: 0o666} { // slurmctld runs as slurm
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	p, err := slurm.PlanInstall(slurm.Site{
		Dir: hooks, Socket: socket, Binary: "/usr/bin/epplan", CheckLua: check, HasScript: true,
		Script: strings.Replace(siteScript, "if jd.account == nil then return slurm.ERROR end",
			"jd.comment = \"site\"", 1),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Steps {
		if strings.HasSuffix(s.File, ".lua") {
			writeFile(t, s.File, unhurried(t, s.Text))
		}
	}
	l := startLab(t, "--hooks", hooks)
	hostile := "x\n\"'|\x1f$(y)"
	j := l.job(t, l.submit(t, "--begin=now+1day", "-J", hostile))
	if j.AdminComment != "epplan:t-1" || j.Comment != "site" || j.Name != hostile || count() != 1 {
		t.Errorf("%+v, %d requests", j, count())
	}
	if err := os.Remove(filepath.Join(hooks, "epplan.lua")); err != nil {
		t.Fatal(err)
	}
	if j := l.job(t, l.submit(t, "--begin=now+1day")); j.AdminComment != "epplan:t-1" {
		t.Errorf("loaded once, yet a removed file is missed: %+v", j)
	}
	if err := os.Remove(socket); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if j := l.job(t, l.submit(t, "--begin=now+1day")); j.AdminComment != "" || j.Comment != "site" {
			t.Errorf("without a controller the job goes on as it is: %+v", j)
		}
	}
}
