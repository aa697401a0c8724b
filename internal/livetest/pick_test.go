package livetest_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/slurm"
)

// levers asks the controller's epd what it steers.
func (l *lab) levers(args ...string) []byte {
	l.Helper()
	all := append([]string{"levers", "--json", "--socket", l.socket(controller)}, args...)
	var out []byte
	l.eventually(fmt.Sprintf("epplan %q", all), func() bool { // Slurm may be too busy for epd's patience
		var err error
		if out, err = exec.Command(filepath.Join(l.bin, "epplan"), all...).CombinedOutput(); err != nil { //nolint:noctx // our own
			l.Logf("%v\n%s", err, out)
		}
		return err == nil
	})
	return out
}

func (l *lab) steered() *epdapi.Levers {
	l.Helper()
	now := new(epdapi.Levers)
	if err := json.Unmarshal(l.levers(), now); err != nil {
		l.Fatal(err)
	}
	return now
}

// queued returns the pending jobs in the order in which Slurm would start them, and
// those of them that have a nice.
func (l *lab) queued() (order, nice []string) {
	l.Helper()
	for line := range strings.Lines(l.slurm("squeue", "-h", "-t", "PD", "-S", "-p,i", "-o", "%A %y")) {
		id, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		order = append(order, id)
		if value != "0" {
			nice = append(nice, id)
		}
	}
	return order, nice
}

// wholeNode is the work of the jobs of [lab.crowd].
const wholeNode = "sleep 600"

// crowd fills all nodes, each with a job that runs until it is cancelled, and has further such jobs wait, by
// their limits.
func (l *lab) crowd(limits ...string) (running []int64, waiting []string) {
	l.Helper()
	for _, on := range l.names {
		running = append(running, l.submit(wholeNode, "--gres=gpu:4", "-N1", "-w", on, "-t", "60"))
	}
	l.eventually("the cluster is full", func() bool {
		return !slices.ContainsFunc(running, func(job int64) bool { return l.state(job) != "RUNNING" })
	})
	for _, limit := range limits {
		waiting = append(waiting, name(l.submit(wholeNode, "--gres=gpu:4", "-N1", "-t", limit)))
	}
	return running, waiting
}

func TestSlurmStartsJobsInThePolicysOrder(t *testing.T) {
	config := enforce + "reorder = \"all\"\n[live.pick]\nevery_s = 1\npolicy = "
	l := newLab(t, setup{config: config + "\"deadline\"\n", roles: true, waits: true})
	// By the policy the shortest limit comes first: the last one submitted.
	running, jobs := l.crowd("50", "40", "30")
	held := name(l.submit(wholeNode, "--gres=gpu:4", "-N1", "-t", "5", "-H"))
	if order, _ := l.queued(); !slices.Equal(order[:3], jobs) {
		t.Fatalf("Slurm's own order is %v, want that of submission, %v", order, jobs)
	}
	wanted := slices.Clone(jobs)
	slices.Reverse(wanted)

	l.write("config.toml", strings.Replace(config, "enforce", "advise", 1)+"\"value\"\n", 0o644)
	l.reloadController()
	l.within(patience, "the order is advised", func() bool {
		now := l.steered()
		return now.Policy == "value" && len(now.Order) == 3 && len(now.Advice) == 2 &&
			slices.Equal(names(now.Order), wanted)
	})
	if _, nice := l.queued(); len(nice) > 0 {
		t.Errorf("advised, and %v have a nice", nice)
	}

	l.write("config.toml", config+"\"value\"\n", 0o644)
	l.reloadController()
	l.within(patience, "the queue is in the policy's order", func() bool {
		order, nice := l.queued()
		return slices.Equal(order[:min(3, len(order))], wanted) && len(nice) == 2
	})
	first := running[0]
	l.slurm("scancel", name(first))
	l.eventually("a job starts", func() bool { order, _ := l.queued(); return len(order) == 3 })
	if order, _ := l.queued(); slices.Contains(order, wanted[0]) {
		t.Errorf("%v wait, want %s to have started", order, wanted[0])
	}

	l.levers("--undo")
	l.eventually("every nice is its user's own", func() bool { _, nice := l.queued(); return len(nice) == 0 })
	if order, _ := l.queued(); !slices.Equal(order[:2], jobs[:2]) {
		t.Errorf("undone, and the order is %v, want %v", order, jobs[:2])
	}
	if reason := l.slurm("squeue", "-h", "-j", held, "-o", "%T %r"); reason != "PENDING JobHeldUser" {
		t.Errorf("the held job is %s", reason)
	}
	l.undrained()
}

func names(ids []slurm.JobID) []string {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = id.String()
	}
	return all
}

// reloadController has the controller read its configuration.
func (l *lab) reloadController() {
	l.Helper()
	out, err := exec.Command(filepath.Join(l.bin, "epplan"), "reload", "--socket", l.socket(controller)).CombinedOutput() //nolint:noctx // our own
	if err != nil {
		l.Fatalf("reload: %v\n%s", err, out)
	}
}
