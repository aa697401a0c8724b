package livetest_test

import (
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/testkit/slurmlab"
)

// hold keeps everybody else from writing the records of a node, until what it
// returns is called.
func (l *lab) holdRecords(node string) (release func()) {
	l.Helper()
	db, err := sql.Open("sqlite3", filepath.Join(l.dir, node, "records.db"))
	if err != nil {
		l.Fatal(err)
	}
	conn, err := db.Conn(l.Context())
	if err == nil {
		_, err = conn.ExecContext(l.Context(), "BEGIN EXCLUSIVE")
	}
	if err != nil {
		l.Fatal(err)
	}
	return func() {
		if _, err := conn.ExecContext(l.Context(), "ROLLBACK"); err != nil {
			l.Error(err)
		}
		_ = conn.Close()
		_ = db.Close()
	}
}

func TestRecordsThatSomebodyElseHoldsAreWrittenLater(t *testing.T) {
	slurmlab.AnySlurm(t)
	l := startLab(t, enforce)
	before := l.lock("n1", 1)
	release := l.holdRecords("n1")
	l.completes(before)
	within := l.submit("sleep 2", "--gres=gpu:1", "-w", "n1", fixed)
	l.ends(within, "COMPLETED")
	<-time.After(6 * time.Second) // longer than SQLite waits
	l.free("n1")
	if s := l.says("n1"); s.Unrecorded != 2 {
		t.Errorf("status %+v, want two runs that wait to be recorded", s)
	}
	release()
	l.recordedBy("n1", 2)
	l.recovered("n1", before)
	l.once("n1", within, "COMPLETED")
}

// epd stops and starts beside records that are held, and what waited is kept.
func TestAnEPDThatIsKilledWhileItsRecordsAreHeldLosesNothing(t *testing.T) {
	slurmlab.AnySlurm(t)
	l := startLab(t, enforce)
	job := l.lock("n1", 1)
	release := l.holdRecords("n1")
	l.completes(job)
	l.stopEPD("n1", syscall.SIGKILL)
	release()
	l.startEPD("n1")
	l.recordedBy("n1", 1)
	l.recovered("n1", job)
}

// backup copies a node's records, while epd runs.
func (l *lab) backup(node string) string {
	l.Helper()
	file := filepath.Join(l.dir, node+".backup")
	if out, err := exec.CommandContext(l.Context(), filepath.Join(l.bin, "epd"), "db", "backup", "--state",
		filepath.Join(l.dir, node), file).CombinedOutput(); err != nil {
		l.Fatalf("backup: %v\n%s", err, out)
	}
	return file
}

// putBack puts a backup in the place of a node's records.
func (l *lab) putBack(node, file string) {
	l.Helper()
	path := filepath.Join(l.dir, node, "records.db")
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
			l.Fatal(err)
		}
	}
	if err := os.Rename(file, path); err != nil {
		l.Fatal(err)
	}
}

// spoil overwrites a file of a node's records from an offset on with what isn't
// SQLite's.
func (l *lab) spoil(node, file string, from int64) {
	l.Helper()
	f, err := os.OpenFile(filepath.Join(l.dir, node, file), os.O_WRONLY, 0)
	if err != nil {
		l.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		l.Fatal(err)
	}
	if _, err := f.WriteAt([]byte(strings.Repeat("garbage!", int(info.Size()-from)/8)), from); err != nil {
		l.Fatal(err)
	}
	if err := f.Close(); err != nil {
		l.Fatal(err)
	}
}

// Records that are damaged are moved aside and not touched; the run that goes on
// is recorded among new ones.
func TestAnEPDWhoseRecordsAreDamagedBeginsNewOnes(t *testing.T) {
	slurmlab.AnySlurm(t)
	l := startLab(t, enforce)
	job := l.lock("n1", 1)
	l.stopEPD("n1", syscall.SIGKILL)
	l.spoil("n1", "records.db", 0)
	l.spoil("n1", "records.db-wal", 0) // which else heals it
	damaged := l.read("n1/records.db")
	l.startEPD("n1")
	l.free("n1")
	if text := l.read("n1.log"); !strings.Contains(text, "damaged") {
		t.Errorf("n1.log: %s", text)
	}
	aside, err := filepath.Glob(filepath.Join(l.dir, "n1", "records.db.damaged-*Z"))
	if err != nil || len(aside) != 1 {
		t.Fatalf("moved aside: %v, %v", aside, err)
	}
	if text, err := os.ReadFile(aside[0]); err != nil || string(text) != damaged {
		t.Errorf("what was moved aside isn't what was there: %v", err)
	}
	l.completes(job)
	l.recordedBy("n1", 1)
	l.recovered("n1", job)
}

// Damage under a running epd: what can't be recorded waits.
func TestARunWhoseRecordsAreDamagedUnderItWaitsForThem(t *testing.T) {
	slurmlab.AnySlurm(t)
	l := startLab(t, enforce)
	first := l.submit("true", "--gres=gpu:1", "-w", "n1", fixed)
	l.ends(first, "COMPLETED")
	l.recordedBy("n1", 1)
	backup := l.backup("n1")

	job := l.lock("n1", 1)
	l.spoilLive("n1")
	l.completes(job)
	l.eventually("epd sees the damage", func() bool { return strings.Contains(l.read("n1.log"), "damaged") })
	l.free("n1")
	l.undrained()
	if s := l.says("n1"); s.Unrecorded != 1 {
		t.Errorf("status %+v, want a run that waits to be recorded", s)
	}
	other := l.submit("true", "--gres=gpu:1", "-w", "n1", fixed)
	l.ends(other, "COMPLETED")

	l.stopEPD("n1", syscall.SIGTERM)
	l.free("n1")
	l.putBack("n1", backup)
	l.startEPD("n1")
	l.recordedBy("n1", 2)
	l.recovered("n1", job)
	l.once("n1", first, "COMPLETED")
	l.once("n1", other, "COMPLETED")
}

// spoilLive puts garbage into all pages but the first of a node's records, under
// its epd, and makes a change beside it, so that epd reads them again.
func (l *lab) spoilLive(node string) {
	l.Helper()
	db, err := sql.Open("sqlite3", filepath.Join(l.dir, node, "records.db"))
	if err != nil {
		l.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // what it wrote is committed
	var busy, pages, size int
	if err := db.QueryRowContext(l.Context(), "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages,
		&size); err != nil || busy != 0 {
		l.Fatalf("checkpoint: busy %d, %v", busy, err)
	}
	if err := db.QueryRowContext(l.Context(), "PRAGMA page_size").Scan(&size); err != nil {
		l.Fatal(err)
	}
	l.spoil(node, "records.db", int64(size))
	if _, err := db.ExecContext(l.Context(), "PRAGMA application_id = 7"); err != nil {
		l.Fatal(err)
	}
}
