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

// siteLimit is the power limit that the site has set on the GPUs of n1: 300 W as delivered.
const siteLimit = dvfsmodel.Watt(280)

// atWork are GPUs that say that they are at work, nearly all of the time: a site's limit of 280 W holds them
// down to a clock, and a run counts at the clock at which it did its work.
const atWork = "sim:4,bursty=1000/0.9999"

// underSiteLimit sets the site's limit and has epd learn from a job, which it returns, that runs under it.
func (l *lab) underSiteLimit() (first int64) {
	l.Helper()
	for _, sim := range l.sims("n1") {
		if err := sim.LimitPower(siteLimit); err != nil {
			l.Fatal(err)
		}
	}
	first = l.known(func() int64 {
		return l.submit(l.untilTold(), "--gres=gpu:2", "-w", "n1", "-t", "60")
	})
	<-time.After(4 * time.Second) // of work
	l.limitIsBack("while nothing is known of the workload")
	l.completes(first)
	l.models("n1", 1)
	return first
}

// limits returns the power limits that the GPUs of n1 really are under.
func (l *lab) limits() []dvfsmodel.Watt {
	l.Helper()
	sims := l.sims("n1")
	limits := make([]dvfsmodel.Watt, len(sims))
	for i, sim := range sims {
		var err error
		if limits[i], err = sim.PowerLimit(); err != nil {
			l.Fatal(err)
		}
	}
	return limits
}

// limitIsBack waits until all GPUs of n1 are under the site's limit, and checks that nothing else is set.
func (l *lab) limitIsBack(when string) {
	l.Helper()
	l.eventually("the site's limit is in force "+when, func() bool {
		return !slices.ContainsFunc(l.limits(), func(w dvfsmodel.Watt) bool { return w != siteLimit })
	})
	l.free("n1")
}

// capped submits a job of a workload that has a model until one is under a lower power limit than the site's,
// as lowered does.
func (l *lab) capped() (job int64, limit dvfsmodel.Watt) {
	l.Helper()
	for range tries {
		var lower []dvfsmodel.Watt
		l.held(func() {
			job = l.submit(l.untilTold(), "--gres=gpu:2", "-w", "n1", "-t", "60")
			l.decided(job)
			lower = slices.DeleteFunc(l.limits(), func(w dvfsmodel.Watt) bool { return w >= siteLimit })
		}, "n1")
		if len(lower) == 2 && lower[0] == lower[1] {
			return job, lower[0]
		}
		l.completes(job)
		l.recordedBy("n1", 0)
	}
	l.Fatalf("nothing is ever capped: %s", l.read("prolog.log"))
	return 0, 0
}

// isHeld checks that two GPUs are held at a lower clock by a power limit alone.
func (l *lab) isHeld(limit dvfsmodel.Watt) {
	l.Helper()
	held := 0
	for _, g := range l.says("n1").GPUs {
		if g.Locked() == (dvfsmodel.Setting{Cap: limit}) && g.Cap == limit && g.Power <= float64(limit) &&
			g.Core < 1380 {
			held++
		}
	}
	if held != 2 {
		l.Errorf("%d GPUs are held by a limit of %v W, want 2: %+v", held, limit, l.says("n1").GPUs)
	}
}

// hasLimits checks what is recorded of a job's power limit, and of that of the one before.
func (l *lab) hasLimits(first, job int64, limit dvfsmodel.Watt) {
	l.Helper()
	l.stopEPD("n1", os.Interrupt)
	o := l.once("n1", job, "COMPLETED")
	if w := o.CapW.Or(0); w != float64(limit) || o.OtherCapsS.Or(0) > 1 ||
		o.Setting != (dvfsmodel.Setting{Cap: limit}) {
		l.Errorf("recorded limit %v, others for %v s, set %v", o.CapW, o.OtherCapsS, o.Setting)
	}
	if w := l.once("n1", first, "COMPLETED").CapW.Or(0); w != float64(siteLimit) {
		l.Errorf("recorded limit %v of the first job, want the site's", w)
	}
	if d := l.decisions(job)[0]; d.Setting.Cap != limit || d.Arm != "treated" ||
		!strings.Contains(d.Reason, "power at most ") {
		l.Errorf("decided %+v", d)
	}
}

// A job whose workload has a model runs under the limit that the administrator wants, and the site's own
// limit is back after it, however it ends.
func TestAJobRunsUnderItsPowerLimitAndTheSitesOwnIsBackHoweverItEnds(t *testing.T) {
	// No clock may be set but the default one, so that the limit alone holds the GPUs.
	l := newLab(t, setup{
		config: enforce + "min_core = 1\n[live.cap]\nmodes = {main = \"constant\"}\nlimit = 0.8\n", gpu: atWork,
	})
	first := l.underSiteLimit()

	ended, limit := l.capped()
	if limit != 224 {
		t.Errorf("limit %v, want 0.8 of the site's", limit)
	}
	<-time.After(4 * time.Second)
	l.isHeld(limit)
	l.completes(ended)
	l.limitIsBack("after a job that ended by itself")

	cancelled, _ := l.capped()
	l.slurm("scancel", name(cancelled))
	l.ends(cancelled, "CANCELLED")
	l.limitIsBack("after a job that was cancelled")

	killed, _ := l.capped()
	l.stopEPD("n1", syscall.SIGKILL)
	if got := l.limits(); !slices.Contains(got, limit) {
		t.Errorf("limits %v: one outlives the process", got)
	}
	l.startEPD("n1")
	l.limitIsBack("after epd was killed and came back")
	l.completes(killed)

	orphan, _ := l.capped()
	l.stopEPD("n1", syscall.SIGKILL)
	l.completes(orphan) // its Epilog gives back what the journal says
	l.limitIsBack("after a job that ended while epd was away")
	l.startEPD("n1")
	l.within(patience, "the run is ended", func() bool { return len(l.runs("n1")) == 0 })
	l.limitIsBack("at the end")
	l.undrained()
	l.hasLimits(first, ended, limit)
}

// Where the core clock can't be locked a power limit that epd chooses holds GPUs at a clock.
func TestAPowerLimitHoldsGPUsWhoseClocksCannotBeLocked(t *testing.T) {
	l := newLab(t, setup{
		config: enforce + "[live.cap]\nmode = \"chosen\"\n", gpu: atWork + ",lock=limit",
	})
	first := l.underSiteLimit()
	job, limit := l.capped()
	<-time.After(4 * time.Second)
	l.isHeld(limit)
	l.completes(job)
	l.limitIsBack("after the job")
	l.undrained()
	l.hasLimits(first, job, limit)
}
