package livetest_test

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/store/record"
)

// sitesTime is how long a site's own part of an Epilog takes.
const sitesTime = 6 * time.Second

// wantOwnTime wants a job's only run to have ended when Slurm says that the job did, to
// the second, without the time that the site's own part of the Epilog took, and to have
// the energy of that time.
func (l *lab) wantOwnTime(node string, job int64) {
	l.Helper()
	info, err := os.Stat(filepath.Join(l.dir, told, name(job)+".ended"))
	if err != nil {
		l.Fatal(err)
	}
	end, err := time.ParseInLocation("2006-01-02T15:04:05",
		strings.TrimSpace(l.slurm("squeue", "-h", "-t", "all", "-o", "%e", "-j", name(job))), time.Local)
	if err != nil {
		l.Fatal(err)
	}
	o := l.once(node, job, record.Completed)
	seconds := o.Ended.Sub(o.Started).Seconds()
	if math.Abs(o.Ended.Sub(end).Seconds()) > 1 || end.Sub(info.ModTime()) > sitesTime-time.Second ||
		math.Abs(o.TimeS.Or(0)-seconds) > 0.01 {
		l.Errorf("its work ended at %v, the job at %v, its run at %v after %v s in %.2f s",
			info.ModTime(), end, o.Ended, o.TimeS, seconds)
	}
	const switching = 0.1 // seconds at other clocks, at its begin and end
	energy, power := o.GPUEnergyJ.Or(0), o.MeanPowerW.Or(0)
	if !(energy > 0) || math.Abs(energy-power*seconds) > 0.02*energy+switching*power {
		l.Errorf("%v J in %.2f s at %v W", o.GPUEnergyJ, seconds, o.MeanPowerW)
	}
}

// whole is more than a second: the end that Slurm tells is cut to one, and that of a
// shorter job may come before its begin, so that its figures are unknown.
const whole = 2 * time.Second

// A health check that a site runs after each job, and epplan after it.
func TestWhatASiteDoesBeforeOurEpilogIsNoPartOfTheJob(t *testing.T) {
	l := startLab(t, enforce)
	job := l.lock("n1", 1)
	l.eventually("the job is at work", func() bool { return l.began(job) })
	<-time.After(whole)
	const gate = "before-epilog.n1"
	l.write(gate, "", 0o644)
	l.finish(job)
	l.eventually("the job's work is done", func() bool { return l.finished(job) })
	<-time.After(sitesTime)
	if err := os.Remove(filepath.Join(l.dir, gate)); err != nil {
		t.Fatal(err)
	}
	l.ends(job, "COMPLETED")
	l.recordedBy("n1", 1)
	l.free("n1")
	l.undrained()
	l.wantOwnTime("n1", job)
}

// ownHooks makes the lab's hooks those of a site that has never heard of epplan: its
// Epilog takes as long as a file is there.
func (l *lab) ownHooks(gate string) {
	l.Helper()
	etc := filepath.Dir(l.conf)
	for hook, text := range map[string]string{
		"prolog.sh": "exit 0\n",
		"epilog.sh": "echo $SLURM_JOB_ID >>" + l.dir + "/site.seen\n" +
			"while [ -e " + filepath.Join(l.dir, gate) + " ]; do sleep 0.1; done\nexit 0\n",
	} {
		l.writeProgram(filepath.Join(etc, hook), strings.NewReader("#!/bin/sh\n"+text), 0o755)
	}
}

// install puts our hooks into the lab's Slurm, for a node's epd.
func (l *lab) install(node string) {
	l.Helper()
	epplan := filepath.Join(l.bin, "epplan")
	install := exec.CommandContext(l.Context(), epplan, "install", "slurm", "--edit-conf", "--dir",
		filepath.Dir(l.conf), "--program", epplan,
		"--socket", l.socket(node), "--journal", filepath.Join(l.dir, node, "journal"), "--submit-socket",
		filepath.Join(l.dir, "submit.sock"))
	if out, err := install.CombinedOutput(); err != nil {
		l.Fatalf("%v\n%s", err, out)
	}
	l.slurm("scontrol", "reconfigure")
}

func TestInstalledHooksGiveClocksBackBeforeASitesOwnEpilog(t *testing.T) {
	l := startLab(t, enforce)
	const gate = "slow.n1"
	l.ownHooks(gate)
	l.install("n1")
	job := int64(0)
	for try := range tries { // a busy machine may be too slow for a Prolog
		job = l.submit(l.untilTold(), "--gres=gpu:1", "-w", "n1", fixed)
		l.eventually("the job is at work", func() bool { return l.began(job) })
		if len(l.hardware("n1")) == 1 {
			break
		}
		if try == tries-1 {
			t.Fatal("nothing is ever locked")
		}
		l.completes(job)
	}
	<-time.After(whole)
	l.write(gate, "", 0o644)
	l.finish(job)
	l.eventually("the site's Epilog runs", func() bool {
		return strings.Contains(l.read("site.seen"), name(job)+"\n")
	})
	l.free("n1")
	if got := l.state(job); got != "COMPLETING" {
		t.Errorf("the job is %s while the site's Epilog runs", got)
	}
	<-time.After(sitesTime)
	if err := os.Remove(filepath.Join(l.dir, gate)); err != nil {
		t.Fatal(err)
	}
	l.ends(job, "COMPLETED")
	l.recordedBy("n1", 1)
	l.undrained()
	l.wantOwnTime("n1", job)
}
