package install_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/testkit/slurmlab"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
	"github.com/epplan/epplan/slurm/install"
)

// patience is for what a real Slurm does by and by: only a hang takes so long.
const patience = 3 * time.Minute

// submitLater gives what Slurm says of a job of a plain user that never starts by itself.
func submitLater(t *testing.T, conf string, options ...string) slurm.Job {
	t.Helper()
	run := slurm.ExecRunner{Conf: conf, Timeout: patience}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "runuser", append(append([]string{
		"-u", "nobody", "--", "sbatch", "--parsable", "-D", "/tmp", "-o", "/dev/null", "--begin=now+1day",
	}, options...), "--wrap", "true")...)
	cmd.Env = append(os.Environ(), "SLURM_CONF="+conf)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("sbatch: %v: %s%s", err, out, &complaint)
	}
	id, err := slurm.ParseJobID(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	j, err := slurm.NewClient(run, patience).Job(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func TestTheLuaHookInsideARealSlurmctld(t *testing.T) {
	check := luac(t)
	socket, count := serve(t, func(w http.ResponseWriter, r *http.Request) {
		s, err := hooks.DecodeSubmission(r.Body)
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
	p, err := install.PlanInstall(install.Site{
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
	conf := filepath.Join(slurmlab.Start(t, "--hooks", hooks), "etc", "slurm.conf")
	hostile := "x\n\"'|\x1f$(y)"
	j := submitLater(t, conf, "-J", hostile)
	if j.AdminComment != "epplan:t-1" || j.Comment != "site" || j.Name != hostile || count() != 1 {
		t.Errorf("%+v, %d requests", j, count())
	}
	if err := os.Remove(filepath.Join(hooks, "epplan.lua")); err != nil {
		t.Fatal(err)
	}
	if j := submitLater(t, conf); j.AdminComment != "epplan:t-1" {
		t.Errorf("loaded once, yet a removed file is missed: %+v", j)
	}
	if err := os.Remove(socket); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if j := submitLater(t, conf); j.AdminComment != "" || j.Comment != "site" {
			t.Errorf("without a controller the job goes on as it is: %+v", j)
		}
	}
}
