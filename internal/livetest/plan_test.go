package livetest_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/live"
)

// plan returns the plan in force once it has so many tasks; what says for which.
func (l *lab) plan(tasks int, what string) *live.Plan {
	l.Helper()
	var p *live.Plan
	l.within(patience, what, func() bool {
		p = l.steered().Plan
		return p != nil && len(p.Jobs) == tasks && p.Stale == "" && p.Trouble == ""
	})
	return p
}

// recordVariable names a file to which the queue is written as the controller lists it, for the recorded
// days of internal/slurmqueue.
const recordVariable = "EPPLAN_RECORD_QUEUE"

func (l *lab) recordQueue() {
	l.Helper()
	path := os.Getenv(recordVariable)
	if path == "" {
		return
	}
	curl := exec.Command("curl", "-sS", "--max-time", "10", "--unix-socket", l.socket(controller), //nolint:noctx // bounded
		"http://epd"+epdapi.PathQueue)
	out, err := curl.Output()
	if err != nil {
		l.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		l.Fatal(err)
	}
	if _, err := fmt.Fprintln(f, strings.TrimSpace(string(out))); err != nil {
		l.Fatal(err)
	}
	if err := f.Close(); err != nil {
		l.Fatal(err)
	}
}

// TestJobsStartInThePlansOrderAtItsClocks plans a full cluster's queue: one small job of a known
// workload, and three large ones that were submitted before it. Then the controller is started again, a
// node comes free, and everything is taken back.
func TestJobsStartInThePlansOrderAtItsClocks(t *testing.T) {
	config := enforce + "reorder = \"all\"\n[live.plan]\npolicy = \"value\"\nevery_s = 5\nmode = "
	l := newLab(t, setup{
		config: config + "\"enforce\"\n", roles: true, waits: true,
		gpu: "sim:4,busy,model=H200", // as Slurm's Gres says
	})
	known := func() int64 { return l.submit(l.untilTold(), "--gres=gpu:1", "-t", "30") }
	first := l.known(known)
	<-time.After(3 * time.Second) // of work
	l.completes(first)
	l.models(controller, 1)
	l.free(l.names...)

	running, jobs := l.crowd("50", "40", "30")
	quick := known()
	p := l.plan(4, "what waits is planned")
	wanted := make([]string, 0, len(p.Jobs)) // what the others take epd predicts by the first one
	for _, j := range p.Jobs {
		wanted = append(wanted, j.Task)
	}
	l.recordQueue()
	if planned := p.Jobs[0]; planned.Task != name(quick) || planned.Core == 0 ||
		planned.GPUModel == "" || !planned.End.After(planned.Start) {
		t.Errorf("planned first is %+v, want job %d at a lower clock", planned, quick)
	}
	ordered := func() bool { return l.isQueued(wanted) }
	l.within(patience, "the queue is in the plan's order", ordered)
	l.newcomer()

	l.stopEPD(controller, os.Interrupt)
	l.startEPD(controller)
	p = l.plan(4, "it is planned again after a restart")
	clocks := p.Jobs[0].Setting
	l.within(patience, "the queue is in the plan's order again", ordered)
	l.recordQueue()
	l.slurm("scancel", name(running[0]))
	l.eventually("the first of the plan runs", func() bool { return l.state(quick) == "RUNNING" })
	l.decided(quick)
	if !l.late(quick) {
		d := l.decisions(quick)
		if len(d) != 1 || d[0].Setting != clocks || !strings.HasPrefix(d[0].Reason, "by plan value: ") {
			t.Errorf("decided %+v, want the plan's %s", d, clocks.Words())
		}
		p = l.plan(3, "the rest is planned anew")
		if n := p.Record.Starts[live.KeptAsPlanned]; n != 1 {
			t.Errorf("starts %v, recent %+v", p.Record.Starts, p.Recent)
		}
	}
	l.recordQueue()
	l.completes(quick)

	l.withoutPlan(config+"\"off\"\n", running[1], jobs[0])
	l.undrained()
}

// isQueued reports whether these jobs wait, in this order.
func (l *lab) isQueued(wanted []string) bool {
	l.Helper()
	order, _ := l.queued()
	return slices.Equal(order, wanted)
}

// newcomer submits a job, which passes nobody that was put behind others, and cancels it.
func (l *lab) newcomer() {
	l.Helper()
	id := name(l.submit("sleep 600", "--gres=gpu:4", "-N1", "-t", "55"))
	defer l.slurm("scancel", id)
	own := name(l.submit("sleep 600", "--gres=gpu:4", "-N1", "-t", "55", "--nice=7"))
	defer l.slurm("scancel", own)
	// As it came: what the next step makes of its nice is the plan's.
	said := l.slurm("scontrol", "--oneliner", "show", "job", id)
	if !regexp.MustCompile(`AdminComment=\S*epplan:\w+-nice[1-9]`).MatchString(said) {
		l.Errorf("a newcomer passes those that are in order: %s", said)
	}
	if nice := l.slurm("squeue", "-h", "-j", own, "-o", "%y"); nice == "0" {
		l.Errorf("job %s has a nice of %s, its user's is 7", own, nice)
	}
}

// withoutPlan takes everything back and turns the plan off: when a running job is cancelled, the one that was
// submitted first begins.
func (l *lab) withoutPlan(config string, running int64, first string) {
	l.Helper()
	l.levers("--undo")
	l.eventually("every nice is its user's own", func() bool { _, nice := l.queued(); return len(nice) == 0 })
	l.write("config.toml", config, 0o644)
	l.reloadController()
	l.within(patience, "there is no plan any more", func() bool { return l.steered().Plan == nil })
	l.slurm("scancel", name(running))
	l.eventually("without a plan Slurm goes on in its own order", func() bool {
		order, nice := l.queued()
		return !slices.Contains(order, first) && len(nice) == 0
	})
}
