package livetest_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/internal/testkit/slurmlab"
	"github.com/epplan/epplan/internal/testkit/spooltest"
)

// smallDisk puts small file systems of their own in the place of folders of a node's
// state, and starts its epd upon them.
func (l *lab) smallDisk(node string, folders ...string) {
	l.Helper()
	l.stopEPD(node, os.Interrupt)
	for _, folder := range folders {
		path := filepath.Join(l.dir, node, folder)
		if err := os.MkdirAll(path, 0o700); err != nil {
			l.Fatal(err)
		}
		shareddata.Need(l, syscall.Mount("none", path, "tmpfs", 0, "size=2m,mode=0700") == nil,
			"a small disk needs the right to mount one")
		l.Cleanup(func() { _ = syscall.Unmount(path, syscall.MNT_DETACH) })
	}
	l.startEPD(node)
}

// fill takes all room of the file system of a folder of a node's, until what it
// returns is called.
func (l *lab) fill(node, folder string) (free func()) {
	l.Helper()
	// Foreign files are moved aside: this one is where nobody looks.
	path := filepath.Join(l.dir, node, folder, "filler.aside")
	spooltest.Fill(l, path)
	return func() {
		if err := os.Remove(path); err != nil {
			l.Error(err)
		}
	}
}

// unlocked runs a job that wants clocks of its own, and sees that it doesn't get
// them.
func (l *lab) unlocked(why string) (job int64) {
	l.Helper()
	l.held(func() {
		job = l.submit("sleep 1", "--gres=gpu:1", "-w", "n1", fixed)
		l.eventually("the run is seen", func() bool { return len(l.runs("n1")) == 1 })
		if got := l.hardware("n1"); len(got) > 0 {
			l.Errorf("locked %v %s", got, why)
		}
	}, "n1")
	return job
}

// Where the journal can't be written nothing is locked; what is locked is given
// back on a full disk too.
func TestAFullDiskOfTheJournalLocksNothingAndKeepsNothingLocked(t *testing.T) {
	slurmlab.AnySlurm(t)
	l := startLab(t, enforce)
	l.smallDisk("n1", "journal")
	free := l.fill("n1", "journal")
	job := l.unlocked("without a journal")
	l.ends(job, "COMPLETED")
	l.recordedBy("n1", 1)
	free()

	during := l.lock("n1", 2)
	free = l.fill("n1", "journal")
	l.completes(during)
	l.recordedBy("n1", 2)
	l.free("n1")
	free()
	l.recovered("n1", job)
	l.once("n1", during, "COMPLETED")
}

// A run that can't be written down gets default clocks; its outcome is recorded
// from memory.
func TestAFullDiskOfTheOpenRunsLosesNoOutcome(t *testing.T) {
	slurmlab.AnySlurm(t)
	l := startLab(t, enforce)
	l.smallDisk("n1", "runs")
	free := l.fill("n1", "runs")
	job := l.unlocked("for a run that is in no file")
	l.ends(job, "COMPLETED")
	l.recordedBy("n1", 1)
	free()

	during := l.lock("n1", 1)
	free = l.fill("n1", "runs")
	l.completes(during)
	l.recordedBy("n1", 2)
	free()
	l.recovered("n1", job)
	l.once("n1", during, "COMPLETED")
}

// On a disk that is full altogether outcomes wait until there is room.
func TestAFullDiskDelaysOutcomesAndLosesNone(t *testing.T) {
	slurmlab.AnySlurm(t)
	l := startLab(t, enforce)
	l.smallDisk("n1", "", "sim") // what the hardware remembers is on no disk
	job := l.lock("n1", 1)
	free := l.fill("n1", "")
	l.completes(job)
	l.free("n1")
	during := l.submit("sleep 1", "--gres=gpu:1", "-w", "n1", fixed)
	l.ends(during, "COMPLETED")
	if s := l.says("n1"); len(s.Troubles) == 0 {
		t.Errorf("status %+v, want troubles", s)
	}
	l.undrained()
	free()
	l.within(patience, "everything is recorded", func() bool {
		s := l.says("n1")
		return len(s.Runs) == 0 && s.Unrecorded == 0
	})
	l.recovered("n1", job)
	l.once("n1", during, "COMPLETED")
}
