package livetest_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/testkit/slurmlab"
)

// TestAPrologThatNeverReachesEPDIsSeen, on the node where it is broken and on no other, and none is in a lab
// where all is well: jobs on one and on both nodes, an array, one that is cancelled, one without GPUs.
func TestAPrologThatNeverReachesEPDIsSeen(t *testing.T) {
	slurmlab.AnySlurm(t)
	l := newLab(t, setup{config: enforce, roles: true, waits: true})
	controllers := func() *epdapi.ControllerStatus { return l.says(controller).Controller }
	l.submit("sleep 2", "--gres=gpu:1", "-w", "n1")
	l.submit("sleep 3", "--gres=gpu:1", "-N2")
	l.submit("sleep 2", "--gres=gpu:1", "-a", "1-2")
	cancelled := l.submit("sleep 600", "--gres=gpu:1", "-w", "n2")
	l.submit("sleep 1", "-w", "n1")
	l.eventually("a job runs", func() bool { return l.state(cancelled) == "RUNNING" })
	l.slurm("scancel", name(cancelled))
	l.within(patience, "Slurm has nothing to do", func() bool { return l.slurm("squeue", "-h") == "" })

	// slurmd has a copy of the Prolog. On n1 it doesn't call epplan any more, as where the program is missing.
	was := l.read("slurm/etc/prolog.sh")
	broken := strings.Replace(was, "#!/bin/sh\n", "#!/bin/sh\n[ \"$SLURMD_NODENAME\" != n1 ] || exit 0\n", 1)
	l.write("slurm/etc/prolog.sh", broken, 0o755)
	missed := l.submit("sleep 5", "--gres=gpu:1", "-w", "n1")
	fine := l.submit("sleep 5", "--gres=gpu:1", "-w", "n2")
	l.within(patience, "the missing Prolog is counted",
		func() bool { return controllers().JobsWithoutProlog() > 0 })
	c := controllers()
	if len(c.MissedPrologs) != 1 || c.MissedPrologs[0].Node != "n1" || c.MissedPrologs[0].Jobs != 1 ||
		int64(c.MissedPrologs[0].Last) != missed {
		t.Errorf("%+v, want job %d on n1 alone; job %d on n2 had its own, and so had those before", c.MissedPrologs,
			missed, fine)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(l.bin, "epplan"), "job", "--socket",
		l.socket(controller), name(missed)).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "its Prolog never reached epd on n1") {
		t.Errorf("epplan job: %v\n%s", err, out)
	}
	l.undrained()
}
