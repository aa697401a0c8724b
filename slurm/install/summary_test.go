package install_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/slurm/install"
)

func summarySite(conf, where string) install.Site {
	s := site(func(string, string) error { return nil })
	s.Conf, s.Summary = conf, where
	return s
}

func TestTheSummaryIsAskedForComesOnceAndGoesAgain(t *testing.T) {
	const file = "/etc/slurm/epplan-task-epilog"
	files := map[string]string{}
	s := summarySite("ClusterName=c\n", "head:6821")
	s.Read = func(name string) (string, error) {
		if text, ok := files[name]; ok {
			return text, nil
		}
		return "", os.ErrNotExist
	}
	plan, err := install.PlanInstall(s)
	if err != nil {
		t.Fatal(err)
	}
	script := stepFor(t, plan, file, "")
	if script.Mode != 0o755 || !strings.Contains(plan.Conf, "\nTaskEpilog="+file+" # epplan, added\n") {
		t.Errorf("mode %o of %s, slurm.conf:\n%s", script.Mode, script.Text, plan.Conf)
	}
	for i := range plan.Steps {
		files[plan.Steps[i].File] = plan.Steps[i].Text
	}
	s.Conf, s.Script, s.HasScript = plan.Conf, files["/etc/slurm/job_submit.lua"], true
	again, err := install.PlanInstall(s)
	if err != nil || len(again.Steps) != 0 {
		t.Errorf("a second time: %+v, %v", again.Steps, err)
	}
	// Slurm still runs it after the first undo, and not after the second.
	undo, err := install.PlanUndo(s)
	if err != nil || strings.Contains(undo.Conf, "TaskEpilog") || removes(undo, file) {
		t.Errorf("undo: %v, %s", err, undo.Conf)
	}
	s.Conf = undo.Conf
	if undo, err = install.PlanUndo(s); err != nil || !removes(undo, file) {
		t.Errorf("second undo: %v, %+v", err, undo.Steps)
	}
}

func removes(p install.Plan, file string) bool {
	for i := range p.Steps {
		if p.Steps[i].File == file && p.Steps[i].Remove {
			return true
		}
	}
	return false
}

func TestASitesOwnTaskEpilogStays(t *testing.T) {
	plan, err := install.PlanInstall(summarySite("TaskEpilog=/etc/slurm/own\n", "head:6821"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(plan.Conf, "epplan-task-epilog") || !strings.Contains(strings.Join(plan.Warnings, "\n"),
		`TaskEpilog=/etc/slurm/own: Slurm runs one only; add to it by hand: timeout 1 /usr/bin/epplan job --line `+
			`--socket head:6821 "$SLURM_JOB_ID" >&2`) {
		t.Errorf("%q\n%s", plan.Warnings, plan.Conf)
	}
	for _, where := range []string{"head", "head:", "$(reboot):1", "run/x.sock", "/run/a b", "-x:1"} {
		if _, err := install.PlanInstall(summarySite("", where)); err == nil {
			t.Errorf("%q is taken", where)
		}
	}
}

// Whatever epplan does, the job sees its line or nothing, soon.
func TestTheSummaryNeverHoldsOrFailsAJob(t *testing.T) {
	const line = "epplan: core 945 MHz\n"
	batch := []string{"SLURM_JOB_ID=7", "SLURM_PROCID=0"}
	for name, c := range map[string]struct {
		program, want string
		env           []string
	}{
		"its line":          {"echo 'epplan: core 945 MHz'; echo noise >&2", line, batch},
		"with a batch step": {"echo 'epplan: core 945 MHz'", line, append(batch, "SLURM_STEP_ID=4294967291")},
		"after srun":        {"echo 'epplan: core 945 MHz'", "", append(batch, "SLURM_STEP_ID=0")},
		"another task":      {"echo 'epplan: core 945 MHz'", "", []string{"SLURM_JOB_ID=7", "SLURM_PROCID=1"}},
		"it fails":          {"exit 4", "", batch},
		"it is missing":     {"", "", batch},
		"it hangs":          {`trap "" TERM; while :; do sleep 600; done`, "", batch},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := summarySite("", "head:6821")
			s.Binary = filepath.Join(dir, "epplan")
			plan, err := install.PlanInstall(s)
			if err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(dir, "hook"), stepFor(t, plan, "/etc/slurm/epplan-task-epilog", "").Text)
			if c.program != "" {
				writeFile(t, s.Binary, "#!/bin/sh\n"+c.program+"\n")
			}
			var stderr strings.Builder
			cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "hook"))
			cmd.Env, cmd.Stderr, cmd.WaitDelay = c.env, &stderr, 20*time.Second
			if out, err := cmd.Output(); err != nil || len(out) > 0 || stderr.String() != c.want {
				t.Errorf("%v, stdout %q, stderr %q, want %q", err, out, stderr.String(), c.want)
			}
		})
	}
}
