package slurm_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// eventually asks until the answer is yes; each try is a command of its own, so nothing spins.
func eventually(t *testing.T, what string, yes func() bool) {
	t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !yes(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not in %s: %s", patience, what)
		}
	}
}

func TestPowerDownAndUpOnARealSlurmWithPowerSaving(t *testing.T) {
	hooks := t.TempDir()
	for _, name := range []string{"suspend.sh", "resume.sh"} {
		text, err := os.ReadFile(shareddata.Path(t, "../slurm-lab/hooks/"+name))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(hooks, name), string(text))
	}
	l := startLab(t, "--hooks", hooks, "--power", "3600", "--conf", "ResumeTimeout=120") // of a busy machine
	state := func() slurm.NodeState {
		n, err := l.client.Node(t.Context(), "n2")
		if err != nil {
			t.Fatal(err)
		}
		return n.State
	}
	u := powerDown("n2")
	if err := l.levers.Change(t.Context(), "", u); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	eventually(t, "n2 powered down", func() bool {
		return state().IsPoweredDown() && !state().Is("POWERING_DOWN")
	})
	t.Logf("powered down after %.1f s: %+v", time.Since(start).Seconds(), state())
	if err := l.levers.Undo(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	start = time.Now()
	eventually(t, "n2 up again", func() bool {
		s := state()
		return s.Base == "IDLE" && s.Usable() && !s.IsPoweredDown() && !s.Is("POWERING_UP")
	})
	t.Logf("up again after %.1f s: %+v", time.Since(start).Seconds(), state())
}

func TestAccountingOnARealSlurm(t *testing.T) {
	for _, name := range []string{"/usr/sbin/slurmdbd", "/usr/sbin/mariadbd"} {
		_, err := os.Stat(name)
		shareddata.Need(t, err == nil, "accounting needs "+name+": run scripts/test-packages.sh")
	}
	l := startLab(t, "--dbd")
	since := time.Now().Add(-time.Minute)
	forged := "x\n999\x1f999\x1froot\x1fmain\x1fCOMPLETED"
	id := l.submit(t, "-t", "7", "--gres=gpu:2", "-J", forged, "--comment", forged)
	l.command(t, "scontrol", "update", "jobid="+id.String(), "AdminComment=site;epplan:t-1")
	var got slurm.Accounting
	eventually(t, "the job's end in accounting", func() bool {
		var err error
		if got, err = l.client.Accounting(t.Context(), since); err != nil {
			t.Log(err)
		}
		return err == nil && len(got.Jobs) == 1 && !got.Jobs[0].End.IsZero()
	})
	o := got.Jobs[0]
	if o.ID != id || o.User != "nobody" || o.State.Base != slurm.Completed || o.Allocated.GPUs() != 2 ||
		o.TimeLimit != live.LimitOf(7*time.Minute) || len(o.Nodes) != 1 || len(got.Rejected) != 0 {
		t.Errorf("%+v, rejected %+v", o, got.Rejected)
	}
	t.Logf("AdminComment in accounting: %q", o.AdminComment)
}
