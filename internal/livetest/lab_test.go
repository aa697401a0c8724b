package livetest_test

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/testkit/slurmlab"
	"github.com/epplan/epplan/slurm/install"
)

// atOnce is how many labs run side by side: two cores bear them. Those that
// mostly wait aren't counted.
const atOnce = 5

var slots = make(chan struct{}, atOnce)

func TestMain(m *testing.M) {
	if asked := os.Getenv(askerVariable); asked != "" {
		ask(asked)
		return
	}
	flag.Parse()
	// Labs are bounded by slots, and tests that wait for Slurm's minutes by nothing.
	if err := flag.Set("test.parallel", "64"); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(built)
	}
	os.Exit(code)
}

// built is where programs are once they were built.
var built string

// programsVariable names a folder with epplan and epd for where they can't be built: in a
// root of another Slurm there is no compiler.
const programsVariable = "EPPLAN_LIVE_PROGRAMS"

// programs builds epplan and epd once for all tests, unless they are there.
var programs = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv(programsVariable); dir != "" {
		return dir, nil
	}
	dir, err := os.MkdirTemp("", "epplan-live")
	if err != nil {
		return "", err
	}
	built = dir
	for name, cgo := range map[string]string{"epplan": "0", "epplab": "0", "epd": "1"} {
		build := exec.Command("go", "build", "-o", filepath.Join(dir, name), "../../cmd/"+name)
		build.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
		if out, err := build.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
		}
	}
	return dir, nil
})

// setup says what a lab is like. Zero values are the usual ones.
type setup struct {
	config   string              // of all epds
	nodes    int                 // 2
	gpus     int                 // of each node: 4
	conf     []string            // further lines of slurm.conf
	args     []string            // further arguments of up.sh
	gpu      string              // epd's --gpu: sim:4
	flags    map[string][]string // further flags of epds, by node
	roles    bool                // a controller of its own, and agents on the nodes
	keys     bool                // these prove who they are by keys, and Slurm does without munge where it can
	waits    bool                // mostly waits: any number of such labs may run
	alone    bool                // no other test runs beside it
	brief    bool                // Slurm's credentials, for which a job that comes back waits, expire soon
	lua      func(string) string // changes epplan.lua
	site     string              // the body of the site's own slurm_job_submit, with CALL for our line
	squeue   string              // what runs before epd's squeue, such as a pause
	apart    string              // a node that is a machine of its own, with an address of its own
	scrape   bool                // epds show metrics, at ports of their own
	heads    bool                // two slurmctlds, and a controller beside each, see failover_test.go
	siteCore float64             // the core clock of [live.site_clocks]; 0: the site has none
}

// lab is a real Slurm with an epd for each node.
type lab struct {
	testing.TB
	*setup
	dir, conf, bin string
	names          []string // of nodes
	base           int      // of its ports
	munged         bool     // Slurm asks one
	port           int      // of the controller
	machine        *machine // that of the node apart; nil: there is none

	mu   *sync.Mutex
	epds map[string]*exec.Cmd
}

// controller names the epd that is one and no node's.
const controller = "controller"

// on returns the lab in a subtest.
func (l *lab) on(tb testing.TB) *lab {
	tb.Helper()
	other := *l
	other.TB = tb
	return &other
}

// startLab starts a Slurm of two nodes with four GPUs each and epd on both, by
// a configuration, and with further arguments of the lab.
func startLab(t *testing.T, config string, args ...string) *lab {
	t.Helper()
	return newLab(t, setup{config: config, args: args})
}

// newLab starts a Slurm with epd on all nodes, and takes it down with the test.
func newLab(tb testing.TB, s setup) *lab {
	tb.Helper()
	up := slurmlab.Script(tb)
	if test, ok := tb.(*testing.T); ok && !s.alone {
		test.Parallel()
	}
	if !s.waits {
		slots <- struct{}{}
		tb.Cleanup(func() { <-slots })
	}
	bin, err := programs()
	if err != nil {
		tb.Fatal(err)
	}
	l := &lab{TB: tb, setup: &s, bin: bin, munged: true, mu: new(sync.Mutex), epds: make(map[string]*exec.Cmd)}
	s.nodes, s.gpus = max(s.nodes, 2), max(s.gpus, 4)
	if s.gpu == "" {
		s.gpu = "sim:4,busy"
	}
	for i := range s.nodes {
		l.names = append(l.names, fmt.Sprintf("n%d", i+1))
	}
	l.base = slurmlab.Ports(tb, s.nodes) // given back when all is down
	l.port = l.base + slurmlab.Spare
	l.makeFolder(filepath.Dir(up))
	if s.apart != "" {
		l.layMachine()
	}
	if s.heads {
		l.nameHeads()
	}
	if s.keys {
		l.ownAuth()
	}
	l.bringUp()
	tb.Cleanup(l.show)
	if s.apart != "" {
		l.moveThere(s.apart)
	}
	if s.heads {
		l.startBackup()
	}
	switch {
	case s.keys:
		if !l.munged {
			l.stopMunged()
		}
		l.makeKeys()
	case l.roles:
		l.startMunge()
	}
	if l.roles {
		l.startEPD(controller)
	}
	for _, node := range l.names {
		l.startEPD(node)
	}
	return l
}

// makeFolder makes the lab's folder, and has all of it taken down when the test
// ends, or the whole program.
func (l *lab) makeFolder(scripts string) {
	l.Helper()
	dir, err := os.MkdirTemp("/tmp", "epplan-lab") // sockets want short paths
	if err != nil {
		l.Fatal(err)
	}
	l.dir = dir
	// It waits until its input ends, as it does with us, however we end.
	const script = `cat >/dev/null
awk -v d="$1/" 'index($2, d) == 1 {print $2}' /proc/mounts | tac | xargs -r -n 1 umount -l
"$2/down.sh" --dir "$1/slurm" --purge && rm -rf "$1"`
	down := exec.Command("/bin/sh", "-c", script, "sh", dir, scripts) //nolint:noctx // the lab's own
	down.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var said strings.Builder
	down.Stdout, down.Stderr = &said, &said
	hold, err := down.StdinPipe()
	if err == nil {
		err = down.Start()
	}
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() {
		for _, node := range append(slices.Clone(l.names), controller) {
			l.stopEPD(node, os.Interrupt)
		}
		l.stopEPD(munge, os.Interrupt)
		_ = hold.Close()
		if err := down.Wait(); err != nil {
			l.Errorf("take the lab down: %v\n%s", err, said.String())
		}
	})
	told := filepath.Join(dir, told)
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(told, 0o700), os.Chmod(told, 0o777)); err != nil {
		l.Fatal(err)
	}
}

// wrap makes a folder for the PATH in which something runs before Slurm's squeue.
func (l *lab) wrap(before string) (folder string) {
	l.Helper()
	l.write("commands/squeue", "#!/bin/sh\n"+before+"\nexec /usr/bin/squeue \"$@\"\n", 0o755)
	l.write("commands/scontrol", "#!/bin/sh\nexec /usr/bin/scontrol \"$@\"\n", 0o755)
	return filepath.Join(l.dir, "commands")
}

// show shows what is left of a lab whose test failed.
func (l *lab) show() {
	if l.Failed() {
		l.dump()
		slurmlab.Show(l, filepath.Join(l.dir, "slurm"))
	}
}

// bringUp starts Slurm with our hooks.
func (l *lab) bringUp() {
	l.Helper()
	l.write("hooks/prolog.sh", l.hook("prolog"), 0o755)
	l.write("hooks/epilog.sh", l.hook("epilog"), 0o755)
	l.write("config.toml", l.config, 0o644)
	l.submitHook()
	args := []string{
		"--nodes", strconv.Itoa(l.nodes), "--gpus", strconv.Itoa(l.gpus),
		"--hooks", filepath.Join(l.dir, "hooks"), "--port", strconv.Itoa(l.base),
	}
	if l.brief {
		args = append(args, "--conf", "AuthInfo=cred_expire=15,socket="+l.dir+"/slurm/munge/socket")
	}
	for _, line := range l.setup.conf {
		args = append(args, "--conf", line)
	}
	slurm := filepath.Join(l.dir, "slurm")
	var before []string
	if l.heads {
		before = l.onHead(head1)
	}
	slurmlab.UpBehind(l, before, slurm, append(args, l.args...)...)
	l.conf = filepath.Join(slurm, "etc", "slurm.conf")
}

func (l *lab) write(name, text string, mode os.FileMode) {
	l.Helper()
	path := filepath.Join(l.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		l.Fatal(err)
	}
	if mode&0o111 != 0 {
		l.writeProgram(path, strings.NewReader(text), mode)
		return
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		l.Fatal(err)
	}
}

// writeProgram has another process write a program. While this one had it open, what
// tests start meanwhile would inherit it for a moment, and nobody can run a file that
// is open for writing.
func (l *lab) writeProgram(path string, text io.Reader, mode os.FileMode) {
	l.Helper()
	const script = `rm -f "$1" && cat >"$1" && chmod "$2" "$1"`
	cmd := exec.CommandContext(l.Context(), "sh", "-c", script, "sh", path, fmt.Sprintf("%o", mode))
	cmd.Stdin = text
	if out, err := cmd.CombinedOutput(); err != nil {
		l.Fatalf("write %s: %v: %s", path, err, out)
	}
}

// read returns a file of the lab's folder; empty where there is none.
func (l *lab) read(name string) string {
	text, err := os.ReadFile(filepath.Join(l.dir, name))
	if err != nil {
		return ""
	}
	return string(text)
}

// hook returns a site's Prolog or Epilog with our line in it. It says what it was
// told, and when our line began and ended, and waits before our line and after it
// while a file of its node's is there.
func (l *lab) hook(kind string) string {
	fallback := ""
	if kind == "epilog" {
		fallback = fmt.Sprintf(" --journal %s/$SLURMD_NODENAME/journal", l.dir)
	}
	return fmt.Sprintf(`#!/bin/sh
export EPD_GPU=%[5]s EPD_STATE=%[1]s/$SLURMD_NODENAME
at=$(date +%%s%%N) restarts=$SLURM_JOB_RESTART_COUNT
echo "$SLURM_JOB_ID on $SLURMD_NODENAME: gpus=$SLURM_JOB_GPUS restarts=$restarts. $at" >>%[1]s/%[3]s.seen
while [ -e %[1]s/before-%[3]s.$SLURMD_NODENAME ]; do sleep 0.1; done
begin=$(date +%%s%%N)
%[2]s/epplan %[3]s --socket %[1]s/$SLURMD_NODENAME.sock%[4]s </dev/null >>%[1]s/%[3]s.log 2>&1
status=$?
end=$(date +%%s%%N)
echo $((end - begin)) >>%[1]s/%[3]s.took
echo "$SLURM_JOB_ID $SLURMD_NODENAME $begin $end $SLURM_JOB_GPUS" >>%[1]s/%[3]s.calls
echo "$SLURM_JOB_ID" >>%[1]s/%[3]s.done
while [ -e %[1]s/%[3]s.$SLURMD_NODENAME ]; do sleep 0.1; done
exit $status
`, l.dir, l.bin, kind, fallback, l.gpu)
}

// holdProlog has the Prologs of a node wait, until what it returns is called.
func (l *lab) holdProlog(node string) (release func()) {
	l.Helper()
	name := "prolog." + node
	l.write(name, "", 0o644)
	return func() {
		if err := os.Remove(filepath.Join(l.dir, name)); err != nil {
			l.Error(err)
		}
	}
}

// held does something while the Prologs of nodes keep jobs from their work: a machine
// that is busy with tests may take longer to look at a short job than it runs.
func (l *lab) held(do func(), nodes ...string) {
	l.Helper()
	for _, node := range nodes {
		defer l.holdProlog(node)()
	}
	do()
}

// usualDeadline is how long our module in job_submit.lua waits for epd, and
// patientDeadline what a machine that is busy with tests has to be given: a script that
// comes too late leaves its job to be told by its name.
const usualDeadline, patientDeadline = "DEADLINE  = 0.015", "DEADLINE  = 2"

// unhurried gives epd more time to answer a submission.
func unhurried(text string) string { return strings.ReplaceAll(text, usualDeadline, patientDeadline) }

// submitHook adds our module to a site's job_submit.lua. The epd of n1 answers
// it, in a time that a machine busy with tests has too.
func (l *lab) submitHook() {
	l.Helper()
	hooks := filepath.Join(l.dir, "hooks")
	plan, err := install.PlanInstall(install.Site{
		Dir: hooks, Socket: filepath.Join(l.dir, "submit.sock"), Binary: filepath.Join(l.bin, "epplan"),
		HasScript: true,
		Script: "function slurm_job_submit(desc, parts, uid)\n" + l.site + "\treturn slurm.SUCCESS\nend\n" +
			"function slurm_job_modify(desc, job, parts, uid)\n\treturn slurm.SUCCESS\nend\nreturn slurm.SUCCESS\n",
		CheckLua: func(name, text string) error {
			check := exec.CommandContext(l.Context(), "luac5.1", "-p", "-")
			check.Stdin = strings.NewReader(text)
			if out, err := check.CombinedOutput(); err != nil {
				return fmt.Errorf("%s: %w: %s", name, err, out)
			}
			return nil
		},
	})
	if err != nil {
		l.Fatal(err)
	}
	change := l.lua
	if change == nil {
		change = unhurried
	}
	for _, s := range plan.Steps {
		if strings.HasSuffix(s.File, ".lua") {
			if strings.Contains(s.Text, "DEADLINE") && !strings.Contains(s.Text, usualDeadline) {
				l.Fatalf("%s has no line %q, by which tests give it more time", s.File, usualDeadline)
			}
			l.write(filepath.Join("hooks", filepath.Base(s.File)), change(s.Text), 0o644)
		}
	}
}

// controllerAt returns where the controller listens.
func (l *lab) controllerAt() string {
	host := "127.0.0.1"
	if l.machine != nil {
		host = l.machine.head
	}
	return net.JoinHostPort(host, strconv.Itoa(l.port))
}

func (l *lab) socket(node string) string { return filepath.Join(l.dir, node+".sock") }

// metricsAddress returns where an epd shows its metrics.
func (l *lab) metricsAddress(name string) string {
	const first = slurmlab.Spare + 2 // up.sh and slurmlab leave these to us, up to the first slurmd's
	return "127.0.0.1:" + strconv.Itoa(l.base+first+slices.Index(append([]string{controller}, l.names...), name))
}

// startEPD starts the epd of a node, with further flags in place of the lab's
// where there are any, and waits until it answers.
func (l *lab) startEPD(node string, flags ...string) {
	l.Helper()
	l.launchEPD(node, flags...)
	l.eventually("epd on "+node+" answers", func() bool { return l.status(node) != nil })
}

// launchEPD starts the epd of a node.
func (l *lab) launchEPD(node string, flags ...string) {
	l.Helper()
	if len(flags) == 0 {
		flags = l.flags[node]
	}
	log, err := os.OpenFile(filepath.Join(l.dir, node+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		l.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // the child has its own
	role, state := "both", node
	switch {
	case node == controller || node == backup:
		role, state = controller, controller
	case l.roles:
		role = "agent"
	}
	epd := slurmlab.Preferred(filepath.Join(l.bin, "epd"), "--role", role, "--state",
		filepath.Join(l.dir, state), "--socket", l.socket(node), "--slurm", "on")
	if node == l.apart && l.machine != nil {
		epd = append(l.machine.inside(), epd...)
	}
	cmd := exec.Command(epd[0], epd[1:]...) //nolint:noctx // our own, stopped below
	if role != controller {
		cmd.Args = append(cmd.Args, "--gpu", l.gpu, "--node", node)
	}
	at := l.controllerAt()
	if l.heads {
		at = l.headsAt(node)
	}
	proof := []string{"--munge-socket", l.mungeSocket()}
	if l.keys {
		proof = l.keyFlags(node)
	}
	if role == "agent" {
		cmd.Args = append(append(cmd.Args, "--controller", at), proof...)
	} else {
		cmd.Args = append(cmd.Args, "--config", filepath.Join(l.dir, "config.toml"))
	}
	if role == controller {
		cmd.Args = append(append(cmd.Args, "--listen", at), proof...)
	}
	if role == controller || role == "both" && node == "n1" {
		cmd.Args = append(cmd.Args, "--submit-socket", filepath.Join(l.dir, "submit.sock"))
	}
	if l.scrape {
		cmd.Args = append(cmd.Args, "--metrics", l.metricsAddress(node))
	}
	cmd.Args = append(cmd.Args, flags...)
	cmd.Env = append(os.Environ(), "SLURM_CONF="+l.conf)
	if l.squeue != "" {
		cmd.Env = append(cmd.Env, "PATH="+l.wrap(l.squeue)+":"+os.Getenv("PATH"))
	}
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		l.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epds[node] = cmd
}

// signal sends a signal to the epd of a node.
func (l *lab) signal(node string, sig os.Signal) {
	l.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	process := l.epds[node].Process
	if sig == syscall.SIGSTOP {
		defer l.holdSim(node, process.Pid)()
	}
	if err := process.Signal(sig); err != nil {
		l.Fatal(err)
	}
}

// holdSim keeps an epd out of its simulated GPUs until the function that it returns has seen it stand
// still: all others wait for the state of simulated GPUs, as nobody does for real ones, while one that
// stands still holds it.
func (l *lab) holdSim(node string, pid int) (release func()) {
	l.Helper()
	lock, err := gpu.HoldSim(filepath.Join(l.dir, node, "sim"))
	if errors.Is(err, fs.ErrNotExist) { // a controller has none
		return func() {}
	}
	if err != nil {
		l.Fatal(err)
	}
	return func() {
		defer lock.Close() //nolint:errcheck // nothing was written
		l.within(patience, "epd stands still", func() bool {
			state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			return err != nil || strings.Contains(string(state), ") T ")
		})
	}
}

// stopEPD stops an epd by a signal and waits for its end; one that doesn't end
// is killed.
func (l *lab) stopEPD(node string, sig os.Signal) {
	l.Helper()
	l.mu.Lock()
	cmd := l.epds[node]
	delete(l.epds, node)
	l.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Signal(sig)
	_ = cmd.Process.Signal(syscall.SIGCONT)
	timer := time.AfterFunc(2*time.Minute, func() {
		_ = cmd.Process.Signal(syscall.SIGQUIT) // says where it is
		<-time.After(time.Second)
		l.Errorf("epd on %s doesn't stop:\n%s", node, l.read(node+".log"))
		_ = cmd.Process.Kill()
	})
	_ = cmd.Wait()
	timer.Stop()
}
