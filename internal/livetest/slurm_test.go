package livetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/testkit/slurmlab"
	"github.com/epplan/epplan/live"
)

// status returns what the epd of a node says; nil: nothing.
func (l *lab) status(node string) *epdapi.Status {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	s, err := epdapi.New(l.socket(node)).Status(ctx)
	if err != nil {
		return nil
	}
	return s
}

// says waits for what the epd of a node says, which must be there.
func (l *lab) says(node string) (s *epdapi.Status) {
	l.Helper()
	l.eventually("epd on "+node+" answers", func() bool {
		s = l.status(node)
		return s != nil
	})
	return s
}

// trySlurm runs one of Slurm's commands.
func (l *lab) trySlurm(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...) //nolint:noctx // Slurm's commands have bounds of their own
	cmd.Env = append(os.Environ(), "SLURM_CONF="+l.conf)
	cmd.Dir = "/tmp"
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return stderr.String(), err
	}
	return strings.TrimSpace(string(out)), nil
}

// slurm runs one of Slurm's commands that must succeed; while slurmctld is too busy
// to listen it is tried again.
func (l *lab) slurm(name string, args ...string) string {
	l.Helper()
	for end := time.Now().Add(patience); ; <-time.After(time.Second) {
		out, err := l.trySlurm(name, args...)
		if err == nil {
			return out
		}
		if !slices.ContainsFunc(busy(name), func(why string) bool { return strings.Contains(out, why) }) ||
			time.Now().After(end) {
			l.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
		l.Logf("%s %q is tried again: %v\n%s", name, args, err, out)
	}
}

// busy returns what a command says of a slurmctld that didn't take it. One that submits
// may have been taken where no answer came.
func busy(command string) []string {
	if command == "runuser" {
		return []string{"connect failure"}
	}
	return []string{
		"Unable to contact slurm controller", "Socket timed out", "Zero Bytes were transmitted or received",
		"Transport endpoint is not connected",
		"Resource temporarily unavailable for job", // from 24.11 on: it is being looked at
	}
}

// pings reports whether slurmctld answers.
func (l *lab) pings() bool {
	_, err := l.trySlurm("scontrol", "ping")
	return err == nil
}

// submit runs a script of one line as nobody.
func (l *lab) submit(line string, args ...string) int64 {
	l.Helper()
	all := append([]string{
		"-u", "nobody", "--", "sbatch", "--parsable", "-D", "/tmp", "-o", "/dev/null", "--wrap", line,
	}, args...)
	id, err := strconv.ParseInt(l.slurm("runuser", all...), 10, 64)
	if err != nil {
		l.Fatal(err)
	}
	return id
}

// state returns a job's state in Slurm's words; that of all its parts, or "" where
// they differ.
func (l *lab) state(job int64) string {
	l.Helper()
	states := strings.Fields(l.slurm("squeue", "-h", "-t", "all", "-o", "%T", "-j",
		strconv.FormatInt(job, 10)))
	if states = slices.Compact(states); len(states) == 1 {
		return states[0]
	}
	return ""
}

// ends waits for a job's end.
func (l *lab) ends(job int64, state string) {
	l.Helper()
	l.eventually("job "+strconv.FormatInt(job, 10)+" is "+state, func() bool { return l.state(job) == state })
}

// name returns how Slurm's commands call a job.
func name(job int64) string { return strconv.FormatInt(job, 10) }

// daemon returns the process of one of Slurm's daemons, by its pid file.
func (l *lab) daemon(which string) int {
	l.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(l.read("slurm/run/" + which + ".pid")))
	if err != nil {
		l.Fatal(err)
	}
	return pid
}

// stopDaemon ends one of Slurm's daemons by a signal.
func (l *lab) stopDaemon(which string, sig syscall.Signal) {
	l.Helper()
	pid := l.daemon(which)
	if err := syscall.Kill(pid, sig); err != nil {
		l.Fatal(err)
	}
	l.eventually(which+" is gone", func() bool { return !alive(pid) })
}

// alive reports whether a process runs; a zombie doesn't.
func alive(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, rest, _ := bytes.Cut(text, []byte(") "))
	return err == nil && !bytes.HasPrefix(rest, []byte("Z"))
}

// startDaemon starts slurmctld, or the slurmd of a node, again.
func (l *lab) startDaemon(which string) {
	l.Helper()
	args := []string{"-f", l.conf}
	program, node, ok := strings.Cut(which, ".")
	if ok {
		args = append(args, "-N", node)
	}
	l.slurm(program, args...)
}

// locked lists the positions of GPUs whose core clock is locked, by what, as
// epd says.
func (l *lab) locked(node string) map[int]dvfsmodel.MHz {
	l.Helper()
	found := make(map[int]dvfsmodel.MHz)
	for i, g := range l.says(node).GPUs {
		if g.LockedCore > 0 {
			found[i] = g.LockedCore
		}
	}
	return found
}

// sims returns the simulated GPUs of a node, as somebody else sees them.
func (l *lab) sims(node string) []*gpu.Sim {
	l.Helper()
	library, err := gpu.OpenSim(l.gpu, config.BuiltinProfiles().Board,
		&gpu.SimOptions{Dir: filepath.Join(l.dir, node, "sim")})
	if err != nil {
		l.Fatal(err)
	}
	sims, err := library.Sims()
	if err != nil {
		l.Fatal(err)
	}
	return sims
}

// hardware lists the core clocks at which a node's GPUs really are locked, but for those at the site's.
func (l *lab) hardware(node string) map[int]float64 {
	l.Helper()
	found := make(map[int]float64)
	for i, sim := range l.sims(node) {
		core, err := sim.Held(gpu.CoreClock)
		if err != nil {
			l.Fatal(err)
		}
		if float64(core) != l.siteCore {
			found[i] = float64(core)
		}
	}
	return found
}

// free checks that nothing is locked on nodes, and that no journal says so.
func (l *lab) free(nodes ...string) {
	l.Helper()
	for _, node := range nodes {
		if got := l.hardware(node); len(got) > 0 {
			l.Errorf("%s: still locked: %v", node, got)
		}
		if left := l.journal(node); len(left) > 0 {
			l.Errorf("%s: the journal has %v", node, left)
		}
	}
}

// freed waits until no run of a node is open and nothing is set any more: the former is so a moment before.
func (l *lab) freed(node string) {
	l.Helper()
	l.within(patience, "the runs of "+node+" are ended", func() bool {
		return len(l.runs(node)) == 0 && len(l.hardware(node)) == 0 && len(l.journal(node)) == 0
	})
}

// journal returns the entries of a node's journal.
func (l *lab) journal(node string) []string {
	l.Helper()
	left, err := filepath.Glob(filepath.Join(l.dir, node, "journal", "*.json"))
	if err != nil {
		l.Error(err)
	}
	return left
}

// runs returns the jobs of a node's open runs.
func (l *lab) runs(node string) []int64 {
	l.Helper()
	var jobs []int64
	for _, r := range l.says(node).Runs {
		if !r.Ended {
			jobs = append(jobs, int64(r.Job))
		}
	}
	return jobs
}

// recordedBy waits until so many outcomes of a node, or of the controller's
// nodes, are recorded since the start and none of the node's waits.
func (l *lab) recordedBy(node string, outcomes int64) {
	l.Helper()
	l.within(patience, "the outcomes of "+node+" are recorded", func() bool {
		s, keeper := l.status(node), l.status(l.keeper(node))
		return s != nil && keeper != nil && keeper.Totals != nil && keeper.Totals.Outcomes >= outcomes &&
			s.Unrecorded == 0
	})
}

// keeper returns the epd that keeps a node's records.
func (l *lab) keeper(node string) string {
	if l.roles {
		return controller
	}
	return node
}

// eventually waits for what others do.
func (l *lab) eventually(what string, done func() bool) {
	l.Helper()
	l.within(2*time.Minute, what, done)
}

func (l *lab) within(bound time.Duration, what string, done func() bool) {
	l.Helper()
	deadline := time.Now().Add(bound)
	for !done() {
		if time.Now().After(deadline) {
			l.dump()
			slurmlab.Show(l, filepath.Join(l.dir, "slurm"))
			l.Fatalf("%s: not within %s", what, bound)
		}
		<-time.After(100 * time.Millisecond)
	}
}

// dump shows what a test that fails has left.
func (l *lab) dump() {
	for _, node := range append([]string{controller}, l.names...) {
		l.Logf("%s.log:\n%s", node, l.read(node+".log"))
		if s := l.status(node); s != nil {
			text, err := json.MarshalIndent(s, "", " ")
			l.Logf("status of %s: %s %v", node, text, err)
		}
	}
	for _, file := range []string{"prolog.log", "epilog.log", "prolog.seen", "epilog.seen"} {
		l.Logf("%s:\n%s", file, l.read(file))
	}
	jobs, _ := l.trySlurm("scontrol", "show", "job")
	nodes, _ := l.trySlurm("sinfo", "-N", "-o", "%N %T %E")
	l.Log(jobs, nodes)
}

// undrained checks that no node was taken out of service: of all, or some.
func (l *lab) undrained(nodes ...string) {
	l.Helper()
	if len(nodes) == 0 {
		nodes = l.names
	}
	states := l.slurm("sinfo", "-h", "-N", "-p", "main", "-n", strings.Join(nodes, ","), "-o", "%N %T %E")
	if strings.Contains(states, "drain") || strings.Contains(states, "down") {
		l.Errorf("nodes are\n%s", states)
	}
}

// outcomes stops the epd of a node and reads what it recorded of a job.
func (l *lab) outcomes(node string, job int64) []record.Outcome {
	l.Helper()
	l.stopEPD(node, os.Interrupt)
	return l.recorded(node, job)
}

// records opens what the epd of a node keeps.
func (l *lab) records(node string) *store.Store {
	l.Helper()
	s, err := store.Open(l.Context(), filepath.Join(l.dir, l.keeper(node), "records.db"), nil)
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = s.Close() })
	return s
}

// recorded reads what the epd of a node recorded of a job.
func (l *lab) recorded(node string, job int64) []record.Outcome {
	l.Helper()
	list, err := l.records(node).OutcomesOfJob(l.Context(), "cluster", job)
	if err != nil {
		l.Fatal(err)
	}
	return slices.DeleteFunc(list, func(o record.Outcome) bool { return o.Node != node })
}

// decisions reads what was decided for a job on n1.
func (l *lab) decisions(job int64) []record.Decision {
	l.Helper()
	list, err := l.records("n1").DecisionsOfJob(l.Context(), "cluster", job)
	if err != nil {
		l.Fatal(err)
	}
	return list
}

// once checks that a job's run on a node is recorded once, as one that ended so.
func (l *lab) once(node string, job int64, state string) record.Outcome {
	l.Helper()
	list := l.recorded(node, job)
	if len(list) != 1 || list[0].ExitState != state || list[0].Unmatched {
		l.Errorf("%s: job %d: outcomes %+v, want one that is %s", node, job, list, state)
		return record.Outcome{}
	}
	return list[0]
}

// runFile returns what the epd of a node wrote down of the only run that it has of a
// job.
func (l *lab) runFile(node string, job int64) live.Run {
	l.Helper()
	files, err := filepath.Glob(filepath.Join(l.dir, node, "runs", "*.json"))
	if err != nil {
		l.Fatal(err)
	}
	for _, file := range files {
		var r struct {
			Run live.Run `json:"run"`
		}
		text, err := os.ReadFile(file)
		if err == nil && json.Unmarshal(text, &r) == nil && int64(r.Run.Job) == job {
			return r.Run
		}
	}
	l.Fatalf("%s has no file of a run of job %d", node, job)
	return live.Run{}
}
