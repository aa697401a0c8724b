package livetest_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/internal/testkit/slurmlab"
)

// Two head nodes on one machine: each has a host name and an address of its own. The controller beside the
// second slurmctld is the backup.
const (
	head1, head2 = "head1", "head2"
	backup       = "backup"
	head1Addr    = "127.0.0.1"
	head2Addr    = "127.0.0.2"
)

// onHead returns what goes before a command that runs on a head node. In a root of another Slurm, which is
// the tests' own, the names stand in its /etc/hosts.
func (l *lab) onHead(name string) []string {
	if os.Getenv(slurmlab.RootEnv) != "" {
		return []string{"unshare", "--uts", "--", "sh", "-c", `hostname "$1" && shift && exec "$@"`, "sh", name}
	}
	const script = `mount --bind "$1" /etc/hosts && hostname "$2" && shift 2 && exec "$@"`
	return []string{
		"unshare", "--uts", "--mount", "--propagation", "private", "--", "sh", "-c", script, "sh",
		filepath.Join(l.dir, "hosts"), name,
	}
}

// nameHeads has slurm.conf name both.
func (l *lab) nameHeads() {
	l.Helper()
	l.write("hosts", fmt.Sprintf("%s localhost %s\n%s %s\n", head1Addr, head1, head2Addr, head2), 0o644)
	if os.Getenv(slurmlab.RootEnv) != "" {
		known, err := os.ReadFile("/etc/hosts")
		if err == nil && !strings.Contains(string(known), head2) {
			err = os.WriteFile("/etc/hosts", append(known, l.read("hosts")...), 0o644)
		}
		if err != nil {
			l.Fatal(err)
		}
	}
	try := append(l.onHead(head1), "true")
	out, err := exec.CommandContext(l.Context(), try[0], try[1:]...).CombinedOutput()
	shareddata.Need(l, err == nil, fmt.Sprintf("two head nodes need names of their own: %v: %s", err, out))
	l.setup.conf = append(l.setup.conf, fmt.Sprintf("SlurmctldHost=%s(%s)", head2, head2Addr),
		"CommunicationParameters=NoCtldInAddrAny", fmt.Sprintf("SlurmctldTimeout=%d", slurmctldTimeout))
	l.flags = map[string][]string{
		controller: {"--standby", "--node", head1}, backup: {"--standby", "--node", head2},
	}
}

// slurmctldTimeout is after how many seconds Slurm's backup takes over.
const slurmctldTimeout = 5

// startBackup starts the second slurmctld. The script that takes a lab down ends whatever has such a file
// of its id.
func (l *lab) startBackup() {
	l.Helper()
	own := strings.NewReplacer("run/slurmctld.pid", "run/slurmd."+backup+".pid", "log/slurmctld.log",
		"log/slurmctld.backup.log", "SlurmctldDebug=verbose", "SlurmctldDebug=debug2").Replace(
		l.read("slurm/etc/slurm.conf"))
	l.write("slurm/etc/slurm.backup.conf", own, 0o644)
	command := append(l.onHead(head2), "slurmctld", "-f", filepath.Join(l.dir, "slurm/etc/slurm.backup.conf"))
	l.slurm(command[0], command[1:]...)
	l.eventually("both slurmctlds are up", func() bool {
		said, err := l.trySlurm("scontrol", "ping")
		return err == nil && strings.Count(said, " is UP") == 2
	})
}

// headsAt returns where a controller listens, and where agents ask.
func (l *lab) headsAt(node string) string {
	port := strconv.Itoa(l.port)
	switch node {
	case controller:
		return net.JoinHostPort(head1Addr, port)
	case backup:
		return net.JoinHostPort(head2Addr, port)
	}
	return net.JoinHostPort(head1Addr, port) + "," + net.JoinHostPort(head2Addr, port)
}

// heardOfAll reports whether Slurm's backup has heard of all nodes, and so of their GPUs.
func (l *lab) heardOfAll() bool {
	l.Helper()
	log := l.read("slurm/log/slurmctld.backup.log")
	for _, node := range l.names {
		if !regexp.MustCompile(`node_registration complete for ` + node + `\b`).MatchString(log) {
			return false
		}
	}
	return true
}

// inCharge returns when Slurm's backup said that it is in charge; zero: it didn't.
func (l *lab) inCharge() time.Time {
	l.Helper()
	return l.saidAt("slurm/log/slurmctld.backup.log", `(?m)^\[(\S+)\] Running as primary controller`,
		"2006-01-02T15:04:05.000", time.Local)
}

// backupReady returns when the epd beside it was ready.
func (l *lab) backupReady() time.Time {
	l.Helper()
	return l.saidAt(backup+".log", `(?m)^time=(\S+) .*msg=ready`, time.RFC3339Nano, time.UTC)
}

// saidAt returns when a line came into a log; zero: it didn't.
func (l *lab) saidAt(log, line, layout string, in *time.Location) time.Time {
	l.Helper()
	m := regexp.MustCompile(line).FindStringSubmatch(l.read(log))
	if m == nil {
		return time.Time{}
	}
	at, err := time.ParseInLocation(layout, m[1], in)
	if err != nil {
		l.Fatal(err)
	}
	return at
}

// TestTheBackupDecidesWhenTheHeadNodeDies kills slurmctld and epd of the first head node at once, while
// jobs run: Slurm's backup goes on, and so does the epd beside it, with the same records. Slurm writes down
// every five seconds what jobs do. Its backup doesn't know of those that began or ended since, gives their
// numbers to others, and drains nodes that have both: before the kill no job begins for a while.
func TestTheBackupDecidesWhenTheHeadNodeDies(t *testing.T) {
	slurmlab.AnySlurm(t, "unshare", "hostname")
	l := newLab(t, setup{
		config: enforce, roles: true, heads: true, nodes: 4, conf: []string{"BatchStartTimeout=10"},
	})
	l.launchEPD(backup)
	t.Cleanup(func() { l.stopEPD(backup, os.Interrupt) })
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the backup's slurmctld:\n%s\nits epd:\n%s", l.read("slurm/log/slurmctld.backup.log"),
				l.read(backup+".log"))
		}
	})
	l.eventually("the second controller stands by", func() bool {
		return strings.Contains(l.read(backup+".log"), "standing by")
	})
	began := func() int { return len(strings.Fields(l.read("prolog.done"))) }
	jobs := func(count int, work string) int64 {
		before := began()
		job := l.submit(work, fmt.Sprintf("--array=0-%d", count-1), "--gres=gpu:1", fixed)
		l.eventually("the jobs began", func() bool { return began() >= before+count })
		return job
	}
	const short, long, after = 24, 8, 24
	first := jobs(short, "sleep 1")
	l.ends(first, "COMPLETED")
	running := jobs(long, l.untilTold())
	// Slurm's backup takes jobs that began without a note of it to wait, and holds them once they are found to run:
	// the scheduler that fills gaps (22.05) notes nothing by itself.
	l.saved()

	slurmctld := l.daemon("slurmctld")
	killed := time.Now()
	l.signal(controller, syscall.SIGKILL)
	if err := syscall.Kill(slurmctld, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	l.stopEPD(controller, os.Kill)
	for id := range long { // their work ends while nobody is in charge
		l.finish(running + int64(id))
		l.finish(running + int64(id) + 1) // the last one has the number of the array
	}
	l.eventually("Slurm's backup is in charge", func() bool { return !l.inCharge().IsZero() })
	l.eventually("it has heard of all nodes", l.heardOfAll)
	second := jobs(after, "sleep 1")
	for _, job := range []int64{running, second} {
		l.within(patience, "all jobs are done", func() bool { return l.state(job) == "COMPLETED" })
	}
	decided, answered := l.afterKill(killed)
	for _, node := range l.names {
		l.within(patience, "all that "+node+" has to tell is recorded", func() bool {
			s := l.status(node)
			return s != nil && s.Unrecorded == 0 && len(s.Runs) == 0
		})
	}
	l.free(l.names...)
	l.undrained()
	// Jobs that begin before Slurm's backup has heard of the nodes' GPUs have none.
	asked := l.askedAfter(l.inCharge())
	since := func(at time.Time) float64 { return at.Sub(killed).Seconds() }
	t.Logf("%d jobs began; after the kill the second epd was ready in %.1f s, Slurm's backup in charge in %.1f s, "+
		"the first job with GPUs began in %.1f s, the first decision was made in %.1f s, of %d",
		began(), since(l.backupReady()), since(l.inCharge()), since(asked), since(answered), decided)
	if late := answered.Sub(asked); decided == 0 || late > mostTakeOver {
		t.Errorf("%d decisions after the kill, the first one %s after a job of Slurm's backup began, want at most %s",
			decided, late, mostTakeOver)
	}
	l.eachRunOnce()
}

// askedAfter returns when the first job with GPUs began after a time, by its Prolog.
func (l *lab) askedAfter(at time.Time) time.Time {
	l.Helper()
	for _, p := range l.prologs() {
		if p.at.After(at) && p.gpus {
			return p.at
		}
	}
	return time.Time{}
}

// prolog is what was seen of one.
type prolog struct {
	job, node string
	gpus      bool // Slurm gave the job some
	at        time.Time
}

// prologs returns those that were seen, in their order.
func (l *lab) prologs() (all []prolog) {
	l.Helper()
	for line := range strings.Lines(l.read("prolog.seen")) {
		said := strings.Fields(line) // JOB on NODE: gpus=0,1 restarts=0. TIME
		const words = 6
		if len(said) != words {
			l.Fatalf("%q", line)
		}
		at, err := strconv.ParseInt(said[5], 10, 64)
		if err != nil {
			l.Fatal(err)
		}
		all = append(all, prolog{said[0], strings.TrimSuffix(said[2], ":"), said[3] != "gpus=", time.Unix(0, at)})
	}
	return all
}

// mostTakeOver is how long after that the first decision may come.
const mostTakeOver = 10 * time.Second

// afterKill counts the decisions after a time, and says when the first one was made.
func (l *lab) afterKill(at time.Time) (count int, first time.Time) {
	l.Helper()
	var us int64
	text := l.rows(fmt.Sprintf("SELECT COUNT(*), COALESCE(MIN(created_us), 0) FROM decisions "+
		"WHERE run_id != '' AND created_us > %d", at.UnixMicro()))
	if _, err := fmt.Sscan(text, &count, &us); err != nil {
		l.Fatal(err)
	}
	return count, time.UnixMicro(us)
}

// eachRunOnce checks that each job that began on a node has one outcome for each time that it did, and that
// none was decided twice: each whose clocks were set was.
func (l *lab) eachRunOnce() {
	l.Helper()
	began, without := make(map[string]int), make(map[string]int)
	for _, p := range l.prologs() {
		if p.gpus {
			began[p.job+" "+p.node]++
		} else { // what its Epilog says may be recorded
			without[p.job+" "+p.node]++
		}
	}
	counts := l.rows("SELECT job_id, node, COUNT(*) FROM outcomes GROUP BY job_id, node")
	for line := range strings.Lines(counts) {
		var job, node string
		var count int
		if _, err := fmt.Sscan(line, &job, &node, &count); err != nil {
			l.Fatal(err)
		}
		if key := job + " " + node; count < began[key] || count > began[key]+without[key] {
			l.Errorf("job %s has %d outcomes on %s, and began there %d times", job, count, node, began[key])
		}
		delete(began, job+" "+node)
	}
	for lost := range began {
		l.Errorf("job %s has no outcome", strings.Replace(lost, " ", " on ", 1))
	}
	for what, query := range map[string]string{
		"runs that were decided twice": "SELECT run_id, node, COUNT(*) FROM decisions WHERE run_id != '' " +
			"GROUP BY run_id, node HAVING COUNT(*) > 1",
		"runs whose clocks were set, and nobody decided that": "SELECT job_id, node FROM outcomes " +
			"WHERE core_mhz > 0 AND decision_id = 0",
		"outcomes of runs that have others": "SELECT run_id, node FROM outcome_conflicts",
	} {
		if got := l.rows(query); got != "" {
			l.Errorf("%s:\n%s", what, got)
		}
	}
}
