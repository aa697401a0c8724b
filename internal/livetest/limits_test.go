package livetest_test

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
)

// limits are the power limits that the GPUs of a node really are under.
func (l *lab) limits(node string) []dvfsmodel.Watt {
	l.Helper()
	var limits []dvfsmodel.Watt
	for _, sim := range l.sims(node) {
		limit, err := sim.PowerLimit()
		if err != nil {
			l.Fatal(err)
		}
		limits = append(limits, limit)
	}
	return limits
}

// capped submits a job of a workload that has a model until one is under a power limit, as lowered
// does.
func (l *lab) capped(node string, limit dvfsmodel.Watt) (job int64) {
	l.Helper()
	for range tries {
		done := false
		l.held(func() {
			job = l.submit(l.untilTold(), "--gres=gpu:2", "-w", node, "-t", "60")
			l.decided(job)
			at := slices.DeleteFunc(l.limits(node), func(w dvfsmodel.Watt) bool { return w != limit })
			done = len(at) == 2
		}, node)
		if done {
			return job
		}
		l.completes(job)
		l.recordedBy(node, 0)
	}
	l.Fatalf("nothing is ever capped at %v W: %s", float64(limit), l.read("prolog.log"))
	return 0
}

// A job whose workload has a model runs under the limit that the administrator wants, and the site's own
// limit is back after it, however it ends.
func TestAJobRunsUnderItsPowerLimitAndTheSitesOwnIsBackHoweverItEnds(t *testing.T) {
	// No clock may be set but the default one, so that the limit alone holds the GPUs.
	l := startLab(t, enforce+"min_core = 1\n[live.cap]\nmodes = {main = \"constant\"}\nlimit = 0.8\n")
	const site, limit = dvfsmodel.Watt(280), dvfsmodel.Watt(224)
	for _, sim := range l.sims("n1") {
		if err := sim.LimitPower(site); err != nil {
			t.Fatal(err)
		}
	}
	back := func(when string) {
		t.Helper()
		l.eventually("the site's limit is back "+when, func() bool {
			return !slices.ContainsFunc(l.limits("n1"), func(w dvfsmodel.Watt) bool { return w != site })
		})
		l.free("n1")
	}

	first := l.known(func() int64 {
		return l.submit(l.untilTold(), "--gres=gpu:2", "-w", "n1", "-t", "60")
	})
	<-time.After(4 * time.Second) // of work
	if got := l.limits("n1"); slices.Contains(got, limit) {
		t.Errorf("limits %v, and nothing is known of the workload", got)
	}
	l.completes(first)
	l.models("n1", 1)

	ended := l.capped("n1", limit)
	<-time.After(4 * time.Second)
	held := 0
	for _, g := range l.says("n1").GPUs {
		if g.LockedCap == limit && g.Cap == limit && g.Power <= float64(limit) && g.Core < 1380 &&
			g.LockedCore == 0 {
			held++
		}
	}
	if held != 2 {
		t.Errorf("%d GPUs are held by the limit, want 2: %+v", held, l.says("n1").GPUs)
	}
	l.completes(ended)
	back("after a job that ended by itself")

	cancelled := l.capped("n1", limit)
	l.slurm("scancel", name(cancelled))
	l.ends(cancelled, "CANCELLED")
	back("after a job that was cancelled")

	killed := l.capped("n1", limit)
	l.stopEPD("n1", syscall.SIGKILL)
	if got := l.limits("n1"); !slices.Contains(got, limit) {
		t.Errorf("limits %v: one outlives the process", got)
	}
	l.startEPD("n1")
	back("after epd was killed and came back")
	l.completes(killed)

	orphan := l.capped("n1", limit)
	l.stopEPD("n1", syscall.SIGKILL)
	l.completes(orphan) // its Epilog gives back what the journal says
	back("after a job that ended while epd was away")
	l.startEPD("n1")
	l.within(patience, "the run is ended", func() bool { return len(l.runs("n1")) == 0 })
	back("at the end")
	l.undrained()

	l.stopEPD("n1", os.Interrupt)
	o := l.once("n1", ended, "COMPLETED")
	if w := o.CapW.Or(0); w != float64(limit) || o.OtherCapsS.Or(0) > 1 ||
		o.Setting != (dvfsmodel.Setting{Cap: limit}) {
		t.Errorf("recorded limit %v, others for %v s, set %v", o.CapW, o.OtherCapsS, o.Setting)
	}
	if w := l.once("n1", first, "COMPLETED").CapW.Or(0); w != float64(site) {
		t.Errorf("recorded limit %v of the first job, want the site's", w)
	}
	if d := l.decisions(ended)[0]; d.Setting.Cap != limit || d.Arm != "treated" ||
		!strings.Contains(d.Reason, "power at most 224 W") {
		t.Errorf("decided %+v", d)
	}
}
