package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/epplan/epplan/internal/daemon"
	"github.com/epplan/epplan/internal/testkit/storetest"
)

// queueSlurm is a Slurm of files: a job's nice and priority, a node's weight. It answers squeue and
// scontrol as the real one does, as far as levers go.
type queueSlurm struct {
	*testing.T
	dir, state string
}

// The jobs are of users who set nothing, nice 7, and something else since epd did; one is held, one runs.
var steered = map[string]string{
	"7.nice": "126", "8.nice": "133", "9.nice": "5", "10.nice": "40", "10.priority": "0", "11.nice": "60",
	"11.state": "RUNNING", "n1.weight": "3", "n2.weight": "9",
}

const restorableLevers = `{"schema":1,"entries":[
{"lever":"nice","job":7,"before":"0","after":"126","phase":"in_force","at":"2026-03-02T12:00:00Z"},
{"lever":"nice","job":8,"before":"7","after":"133","phase":"undoing","at":"2026-03-02T12:00:00Z"},
{"lever":"nice","job":9,"before":"0","after":"90","phase":"in_force","at":"2026-03-02T12:00:00Z"},
{"lever":"nice","job":10,"before":"0","after":"40","phase":"in_force","at":"2026-03-02T12:00:00Z"},
{"lever":"nice","job":11,"before":"0","after":"60","phase":"in_force","at":"2026-03-02T12:00:00Z"},
{"lever":"nice","job":12,"before":"0","after":"60","phase":"in_force","at":"2026-03-02T12:00:00Z"},
{"lever":"weight","node":"n1","before":"1","after":"3","phase":"in_force","at":"2026-03-02T12:00:00Z"},
{"lever":"weight","node":"n2","before":"1","after":"4","phase":"in_force","at":"2026-03-02T12:00:00Z"}]}`

func openQueueSlurm(t *testing.T) *queueSlurm {
	t.Helper()
	dir, err := os.MkdirTemp("", "epd") //nolint:usetesting // t.TempDir's folders are closed to other users
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	q := &queueSlurm{T: t, dir: filepath.Join(dir, "slurm"), state: filepath.Join(dir, "state")}
	must(t, os.MkdirAll(filepath.Join(q.dir, "bin"), 0o755))
	must(t, os.Chmod(q.dir, 0o777))
	must(t, os.MkdirAll(filepath.Join(q.state, "levers"), 0o700))
	writeFile(t, filepath.Join(q.state, "levers", "levers.json"), restorableLevers)
	for name, value := range steered {
		writeFile(t, filepath.Join(q.dir, name), value)
		must(t, os.Chmod(filepath.Join(q.dir, name), 0o666))
	}
	script := `#!/bin/sh
cd '` + q.dir + `' || exit 1
[ ! -e hang ] || exec sleep 600
case "${0##*/} $*" in
"scontrol --version") echo slurm 24.11.5 ;;
"scontrol ping") cat ping ;;
"scontrol show config") echo "BOOT_TIME = 2026-03-01T12:00:00" ;;
"scontrol show node "*)
	for f in *.weight; do
		n=${f%.weight}
		case "$*" in *" n"[0-9]) case "$*" in *" $n") ;; *) continue ;; esac ;; esac
		printf 'NodeName=%s Arch=x86_64\n   State=IDLE Weight=%s\n   Partitions=main\n\n' "$n" "$(cat "$f")"
	done ;;
squeue*)
	between=
	printf '{"jobs":['
	for f in *.nice; do
		n=${f%.nice} state=PENDING priority=100
		case "$*" in *--jobs=*) case "$*" in *"--jobs=$n") ;; *) continue ;; esac ;; esac
		[ ! -e "$n.state" ] || state=$(cat "$n.state")
		[ ! -e "$n.priority" ] || priority=$(cat "$n.priority")
		printf '%s{"job_id":%s,"job_state":"%s","name":"j",' "$between" "$n" "$state"
		printf '"priority":%s,"nice":%s}' "$priority" "$(cat "$f")"
		between=,
	done
	printf ']}' ;;
"scontrol update jobid="*) echo "$*" >>updates; n=${2#jobid=}; echo "${3#Nice=}" >"$n.nice" ;;
"scontrol update nodename="*) echo "$*" >>updates; n=${2#nodename=}; echo "${3#Weight=}" >"$n.weight" ;;
*) echo "unknown: $*" >&2; exit 1 ;;
esac
`
	for _, name := range []string{"scontrol", "squeue"} {
		path := filepath.Join(q.dir, "bin", name)
		writeFile(t, path, script)
		must(t, os.Chmod(path, 0o755))
	}
	t.Setenv("PATH", filepath.Join(q.dir, "bin")+":"+os.Getenv("PATH"))
	return q
}

// value returns what a job or a node has now.
func (q *queueSlurm) value(name string) string {
	q.Helper()
	text, err := os.ReadFile(filepath.Join(q.dir, name))
	must(q.T, err)
	return strings.TrimSpace(string(text))
}

// updates returns the commands that changed something.
func (q *queueSlurm) updates() []string {
	q.Helper()
	text, err := os.ReadFile(filepath.Join(q.dir, "updates"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	must(q.T, err)
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// epd runs it and returns its exit status and all that it said.
func (q *queueSlurm) epd(args ...string) (code int, said string) {
	q.Helper()
	var out, log text
	code = run(q.Context(), append([]string{"epd"}, args...), &out, &log)
	return code, out.String() + log.String()
}

// wantTakenBack says what isn't the users' and the site's own, or what of theirs is gone.
func (q *queueSlurm) wantTakenBack(held string) {
	q.Helper()
	for name, want := range map[string]string{
		"7.nice": "0", "8.nice": "7", "9.nice": "5", "10.nice": held, "n1.weight": "1", "n2.weight": "9",
	} {
		if got := q.value(name); got != want {
			q.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func TestARestoreWithoutEPDTakesSlurmsQueueBack(t *testing.T) {
	q := openQueueSlurm(t)
	code, said := q.epd("restore", "--state", q.state, "--dry-run")
	if code != exitDone || !strings.Contains(said, `the nice of job 8 back to "7", if it still is "133"`) ||
		!strings.Contains(said, "would take the weight of node n1 back") || q.updates() != nil {
		t.Errorf("a dry run: status %d: %s%q", code, said, q.updates())
	}
	code, said = q.epd("restore", "--state", q.state)
	q.wantTakenBack("40")
	if code != exitFailed || !strings.Contains(said, "1 changes are left, of jobs that are held") ||
		!strings.Contains(said, "epd restore --state "+q.state) ||
		!strings.Contains(said, "note: 3 of epd's changes") {
		t.Errorf("status %d: %s", code, said)
	}
	must(t, os.Remove(filepath.Join(q.dir, "10.priority")))
	if code, said = q.epd("restore", "--state", q.state); code != exitDone {
		t.Errorf("once the job is released: status %d: %s", code, said)
	}
	q.wantTakenBack("0")
	before := len(q.updates())
	if code, said = q.epd("restore", "--state", q.state); code != exitDone || len(q.updates()) != before {
		t.Errorf("again: status %d: %s%q", code, said, q.updates()[before:])
	}
}

func TestARestoreOfAJournalAloneLeavesSlurmAlone(t *testing.T) {
	q := openQueueSlurm(t)
	journal := filepath.Join(q.state, "journal")
	code, said := q.epd("restore", "--gpu", "sim:2", "--state", q.state, "--journal", journal)
	if code != exitDone || q.updates() != nil {
		t.Errorf("status %d: %s%q", code, said, q.updates())
	}
}

func TestARestoreFightsNoEPDThatRunsOrTakesOver(t *testing.T) {
	q := openQueueSlurm(t)
	lock, err := daemon.LockState(q.state, roleController)
	must(t, err)
	code, said := q.epd("restore", "--state", q.state)
	if code != exitFailed || !strings.Contains(said, "epplan levers --undo") || q.updates() != nil {
		t.Errorf("beside an epd that runs: status %d: %s%q", code, said, q.updates())
	}
	lock.Release()
	// As the unit runs it: its folder, then the options of the epd that ended, which name another one.
	stopped := []string{
		"--role", "controller", "--state", "/var/lib/epplan-controller", "--standby", "--node", "head1.site",
		"--state", q.state, "--listen", "0.0.0.0:6821", "restore", "--within", "20s",
	}
	const ping = "Slurmctld(primary) at head1 is %s\nSlurmctld(backup) at head2 is UP\n"
	writeFile(t, filepath.Join(q.dir, "ping"), fmt.Sprintf(ping, "DOWN"))
	code, said = q.epd(stopped...)
	if code != exitDone || !strings.Contains(said, "another machine's slurmctld is in charge") ||
		q.updates() != nil {
		t.Errorf("where another machine takes over: status %d: %s%q", code, said, q.updates())
	}
	writeFile(t, filepath.Join(q.dir, "ping"), fmt.Sprintf(ping, "UP"))
	code, said = q.epd(stopped...)
	if q.wantTakenBack("40"); code != exitFailed { // of the held job
		t.Errorf("in charge: status %d: %s", code, said)
	}
}

func TestARestoreIsBoundedWhereSlurmHangsOrIsAwayAndLosesNothing(t *testing.T) {
	q := openQueueSlurm(t)
	hang := filepath.Join(q.dir, "hang")
	writeFile(t, hang, "")
	code, said := q.epd("restore", "--state", q.state, "--within", "300ms")
	if code != exitFailed ||
		!strings.Contains(said, "changes are left in Slurm; to go on: epd restore --state "+q.state) {
		t.Errorf("Slurm hangs: status %d: %s", code, said)
	}
	must(t, os.Remove(hang))
	code, said = q.epd("restore", "--state", q.state, "--slurm", "on")
	if code != exitUsage {
		t.Errorf("a flag of a running epd: status %d: %s", code, said)
	}
	code, said = q.epd("--slurm", "off", "restore", "--state", q.state)
	if code != exitFailed || !strings.Contains(said, "the Nice of 6 jobs, the weight of 2 nodes") ||
		q.updates() != nil {
		t.Errorf("without Slurm's commands: status %d: %s%q", code, said, q.updates())
	}
	q.epd("restore", "--state", q.state)
	q.wantTakenBack("40")
}

func TestLeversOfANewerOrNoEPDAreSaidAndNothingIsDoneByThem(t *testing.T) {
	for what, text := range map[string]string{
		"written by a newer epd": `{"schema":99,"entries":[]}`, "not written by this version": "{",
	} {
		q := openQueueSlurm(t)
		writeFile(t, filepath.Join(q.state, "levers", "levers.json"), text)
		code, said := q.epd("restore", "--state", q.state)
		if code != exitFailed || !strings.Contains(said, what) || q.updates() != nil {
			t.Errorf("%s: status %d: %s%q", text, code, said, q.updates())
		}
	}
}

func TestRootTakesBackAsTheControllersUser(t *testing.T) {
	givesFiles(t)
	storetest.NeedSQLite(t)
	q := openQueueSlurm(t)
	must(t, filepath.WalkDir(q.state, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, stranger, stranger))
	}))
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestEPDAsAChild$")
	cmd.Env = append(os.Environ(), asChild+"="+strings.Join([]string{"epd", "restore", "--state", q.state}, "\n"))
	out, err := cmd.CombinedOutput()
	want := fmt.Sprintf("as user %d, whose folder %s is", stranger, q.state)
	if err == nil || !strings.Contains(string(out), want) {
		t.Errorf("%v: %s", err, out) // one job is held
	}
	q.wantTakenBack("40")
	for _, path := range everywhere(t, q.state) {
		info, err := os.Stat(path)
		must(t, err)
		if owner, _ := info.Sys().(*syscall.Stat_t); owner.Uid != stranger {
			t.Errorf("%s belongs to user %d", path, owner.Uid)
		}
	}
	if said := q.updates(); len(said) != 3 || !slices.Contains(said, "update jobid=7 Nice=0") {
		t.Errorf("%q", said)
	}
}
