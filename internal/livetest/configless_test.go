package livetest_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/epplan/epplan/internal/testkit/slurmlab"
	"github.com/epplan/epplan/slurm"
)

// configless starts the slurmd of a node anew without a slurm.conf of its own: it fetches what slurmctld has.
// Before it has fetched anything, it knows no other munged than the usual one.
func (l *lab) configless(node string) {
	l.Helper()
	l.stopDaemon("slurmd."+node, syscall.SIGTERM)
	const hide = "mkdir -p /run/munge /run/slurm && " +
		"mount -t tmpfs none /run/munge && mount -t tmpfs none /run/slurm && "
	const script = `ln -s "$1/munge/socket" /run/munge/munge.socket.2 &&
exec slurmd -N "$2" --conf-server "$3" >>"$1/log/slurmd.$2.out" 2>&1 </dev/null`
	args := []string{"sh", filepath.Join(l.dir, "slurm"), node, fmt.Sprintf("127.0.0.1:%d", l.base+17)}
	cmd := exec.CommandContext(l.Context(), "sh", append([]string{"-c", script}, args...)...)
	if os.Getenv(slurmlab.RootEnv) == "" { // there /run is nobody else's
		cmd = exec.CommandContext(l.Context(), "unshare", append([]string{
			"--mount", "--propagation", "private", "--", "sh", "-c", hide + script,
		}, args...)...)
	}
	cmd.Env = append(os.Environ(), "LAB="+l.dir+"/slurm/") // down.sh ends what names the lab
	cmd.Dir = "/"
	if out, err := cmd.CombinedOutput(); err != nil {
		l.Fatalf("slurmd --conf-server: %v: %s", err, out)
	}
	l.eventually(node+" is back", func() bool {
		return strings.Contains(l.slurm("sinfo", "-h", "-N", "-p", "main", "-n", node, "-o", "%T"), "idle")
	})
}

// TestConfiglessNodesFetchTheHooks, run them beside the site's own, and do without them again.
func TestConfiglessNodesFetchTheHooks(t *testing.T) {
	l := newLab(t, setup{config: enforce, conf: []string{"SlurmctldParameters=enable_configless"}, waits: true})
	// The site's own hooks never ask epd.
	for _, hook := range []string{"prolog", "epilog"} {
		l.write("slurm/etc/"+hook+".sh", "#!/bin/sh\necho own "+hook+" >>"+l.dir+"/order\n", 0o755)
	}
	install := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), filepath.Join(l.bin, "epplan"), append([]string{
			"install", "slurm", "--no-lua-check", "--dir", filepath.Join(l.dir, "slurm/etc"), "--program",
			l.dir + "/epplan", "--socket", l.socket("n1"), "--submit-socket", l.dir + "/submit.sock",
		}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			out = append(out, err.Error()...)
		}
		return string(out)
	}
	version, err := slurm.ParseVersion(strings.TrimSpace(l.slurm("slurmctld", "-V")))
	if err != nil {
		t.Fatal(err)
	}
	if !version.AtLeast(23, 11) {
		if said := install("--configless"); !strings.Contains(said, "can't send hooks to nodes") ||
			l.read("slurm/etc/epplan-prolog") != "" {
			t.Errorf("Slurm %s: %s", version, said)
		}
		return
	}

	l.write("epplan", "#!/bin/sh\necho ours $1 >>"+l.dir+"/order\nexec "+l.bin+"/epplan \"$@\"\n", 0o755)
	l.configless("n1")
	t.Log(install("--configless", "--edit-conf"))
	l.slurm("scontrol", "reconfigure")
	fetched := func(hook string) string { return l.read("slurm/spool/n1/conf-cache/epplan-" + hook) }
	l.eventually("n1 has fetched the hooks",
		func() bool { return fetched("prolog") != "" && fetched("epilog") != "" })
	for _, hook := range []string{"prolog", "epilog"} {
		if own := l.read("slurm/etc/epplan-" + hook); fetched(hook) != own {
			t.Errorf("%s: fetched %q, want %q", hook, fetched(hook), own)
		}
	}
	job := l.submit(l.untilTold(), "--gres=gpu:1", "-w", "n1", fixed)
	l.eventually("a GPU is locked", func() bool { return len(l.hardware("n1")) == 1 })
	l.completes(job)
	l.recordedBy("n1", 1)
	l.once("n1", job, "COMPLETED")
	l.free("n1")
	const order = "own prolog\nours prolog\nours epilog\nown epilog\n"
	l.eventually("the site's Epilog ran", func() bool { return strings.Count(l.read("order"), "\n") == 4 })
	if got := l.read("order"); got != order {
		t.Errorf("hooks ran in the order\n%s, want\n%s", got, order)
	}
	// An update: what is sent follows at a reconfigure.
	t.Log(install("--journal", l.dir+"/elsewhere/journal"))
	l.slurm("scontrol", "reconfigure")
	l.eventually("n1 has fetched the new Epilog",
		func() bool { return strings.Contains(fetched("epilog"), "/elsewhere/") })

	t.Log(install("--undo"))
	if l.read("slurm/etc/epplan-prolog") == "" {
		t.Error("the Prolog is gone before slurm.conf was read again")
	}
	l.slurm("scontrol", "reconfigure")
	t.Log(install("--undo"))
	if l.read("slurm/etc/epplan-prolog")+l.read("slurm/etc/epplan-epilog") != "" {
		t.Error("the hooks are still there")
	}
	l.ends(l.submit("true", "--gres=gpu:1", "-w", "n1"), "COMPLETED")
	l.undrained()
}
