package livetest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/testkit/doctest"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/internal/testkit/slurmlab"
)

// guide is the page that takes an administrator from nothing to enforce, and
// back. Its console blocks are run as they are written, in order.
const guide = "docs/slurm.md"

// guideLab is the machine of the page.
type guideLab struct {
	*lab
	real, page *strings.Replacer
	env        map[string]string // by prompt: the socket at which epplan asks
}

// newGuideLab starts a Slurm of one node that has never heard of epplan, with a
// site's own hooks, by name.
func newGuideLab(t *testing.T, hooks map[string]string) *guideLab {
	t.Helper()
	up := slurmlab.Script(t)
	t.Parallel()
	slots <- struct{}{}
	t.Cleanup(func() { <-slots })
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	l := &lab{
		TB: t, setup: &setup{nodes: 1, gpus: 4}, base: slurmlab.Ports(t, 1), mu: new(sync.Mutex),
		epds: make(map[string]*exec.Cmd),
	}
	head, pages := slurmlab.Address(t), slurmlab.Address(t)
	l.makeFolder(filepath.Dir(up))
	l.bin = filepath.Join(l.dir, "bin")
	g := &guideLab{lab: l}
	g.source(bin)
	t.Cleanup(g.stopAll)
	slurm := filepath.Join(l.dir, "slurm")
	args := []string{"--nodes", "1", "--gpus", "4", "--port", strconv.Itoa(l.base)}
	if hooks != nil {
		for name, text := range hooks {
			l.write("hooks/"+name, text, 0o755)
		}
		args = append(args, "--hooks", filepath.Join(l.dir, "hooks"))
	}
	slurmlab.Up(t, slurm, args...)
	t.Cleanup(l.show)
	l.conf = filepath.Join(slurm, "etc", "slurm.conf")
	g.names(map[string]string{
		"/etc/slurm": slurm + "/etc", "/etc/epplan": l.dir + "/epplan", "/var/lib/epplan": l.dir + "/state",
		"/var/log/epplan": l.dir + "/log",
		"/run/epplan":     l.dir + "/run", "/run/munge/munge.socket.2": slurm + "/munge/socket",
		"/usr/bin": l.bin, "/etc/systemd/system": l.dir + "/systemd", "/etc/default": l.dir + "/default",
		"/usr/local/sbin": l.dir + "/site",
		"head:6821":       head, "127.0.0.1:9821": pages,
	})
	g.site(up)
	return g
}

// names are the paths of the page and what they are in the lab.
func (g *guideLab) names(table map[string]string) {
	there, back := make([]string, 0, 2*len(table)), make([]string, 0, 2*len(table))
	for page, here := range table {
		there, back = append(there, page, here), append(back, here, page)
	}
	g.real, g.page = strings.NewReplacer(there...), strings.NewReplacer(back...)
	g.env = map[string]string{
		"# ": "-agent/agent", "node# ": "-agent/agent", "head# ": "/controller", "$ ": "/submit",
	}
}

// site is what a site has that wants its nodes to sleep: programs that switch
// them off and on.
func (g *guideLab) site(up string) {
	g.Helper()
	fifo := filepath.Join(g.dir, "slurm", "run", "power.fifo")
	for name, word := range map[string]string{"node-off": "suspend", "node-on": "resume"} {
		g.write("site/"+name, "#!/bin/sh\necho \""+word+" $1\" >"+fifo+"\n", 0o755)
	}
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		g.Fatal(err)
	}
	if out, err := exec.CommandContext(g.Context(), "chown", "slurm:", fifo).CombinedOutput(); err != nil {
		g.Fatalf("%v: %s", err, out)
	}
	power := exec.Command(filepath.Join(filepath.Dir(up), "powerd.sh"), filepath.Join(g.dir, "slurm")) //nolint:noctx // the lab's own, ended below
	power.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := power.Start(); err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() {
		_ = syscall.Kill(-power.Process.Pid, syscall.SIGKILL)
		_ = power.Wait()
	})
}

// stopAll ends the epds that the page started, by their pid files.
func (g *guideLab) stopAll() {
	files, _ := filepath.Glob(filepath.Join(g.dir, "run", "*.pid"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		pid := 0
		if _, scanned := fmt.Sscan(string(text), &pid); err != nil || scanned != nil || pid <= 1 {
			continue
		}
		args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && bytes.Contains(args, []byte(g.dir)) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// run runs a command of the page and returns what it shows, in the page's names.
func (g *guideLab) run(s *doctest.Step) string {
	g.Helper()
	ctx, cancel := context.WithTimeout(g.Context(), patience)
	defer cancel()
	line := g.real.Replace(strings.ReplaceAll(s.Command, "gpu01", "n1"))
	if strings.Contains(line, "install slurm") {
		g.exchange(patientDeadline, usualDeadline) // as it was written
		defer g.exchange(usualDeadline, patientDeadline)
	}
	args := []string{"sh", "-c", line}
	if s.Prompt == "$ " {
		args = append([]string{"runuser", "-u", "nobody", "--"}, args...)
	}
	args = slurmlab.Preferred(args...)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = filepath.Join(g.dir, "src")
	cmd.Env = append(os.Environ(), "PATH="+g.bin+":"+g.dir+"/standin:"+os.Getenv("PATH"),
		"SLURM_CONF="+g.conf, "EPD_GPU=sim:4,busy", "EPD_STATE="+g.dir+"/state",
		"EPPLAN_SOCKET="+g.dir+"/run"+g.env[s.Prompt]+".sock", "EPPLAN_SUBMIT_SOCKET="+g.dir+
			"/run/submit.sock")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		fmt.Fprintf(&out, "(%v)\n", err)
	}
	return regexp.MustCompile(`\bn1\b`).ReplaceAllString(g.page.Replace(out.String()), "gpu01")
}

// exchange changes the module that the page installed, where it is there.
func (g *guideLab) exchange(before, after string) {
	g.Helper()
	if text := g.read("slurm/etc/epplan.lua"); text != "" {
		g.write("slurm/etc/epplan.lua", strings.ReplaceAll(text, before, after), 0o644)
	}
}

// looks reports whether a command only looks at what comes by and by: it is
// repeated until it shows what the page says.
func looks(s *doctest.Step) bool {
	words := strings.Fields(s.Command)
	if len(words) > 1 && words[0] == "epplan" {
		switch words[1] {
		case "status", "jobs", "job", "explain", "savings", "estimate":
			return true
		}
	}
	return words[0] == "sinfo" || words[0] == "squeue" || words[0] == "curl"
}

func TestTheGuideWorksAsWritten(t *testing.T) {
	c := doctest.Claim(t, "slurm")
	if len(c.Of(guide)) < len(c.Blocks) {
		t.Fatalf("%v, want blocks of %s only", c.Pages(), guide)
	}
	g := newGuideLab(t, nil)
	for _, b := range c.Blocks {
		for _, s := range b.Steps {
			c.Ran(s)
			g.step(t, s)
		}
	}
	g.undrained()
	g.startsUnits("epd", "epd-controller", "epd-agent")
}

// step runs a command of the page until it shows what the page says.
func (g *guideLab) step(t *testing.T, s *doctest.Step) {
	t.Helper()
	got := g.run(s)
	for deadline := time.Now().Add(patience); !doctest.Shows(got, s.Shown) && looks(s) &&
		time.Now().Before(deadline); got = g.run(s) {
		<-time.After(200 * time.Millisecond)
	}
	if !doctest.Shows(got, s.Shown) {
		log, _ := os.ReadFile(filepath.Join(g.dir, "log", "epd.log"))
		t.Logf("epd.log: %s", log)
		t.Fatalf("%s: %s%s\nshows:\n%s\nwant:\n%s", s.At(), s.Prompt, s.Command, got,
			strings.Join(s.Shown, "\n"))
	}
	if os.Getenv("EPPLAN_GUIDE_SHOW") != "" {
		t.Logf("%s%s\n%s", s.Prompt, s.Command, got)
	}
}

// standIns are what the machine of the page has, and the lab has not: programs
// that keep record of what they are told, and want what they are told of to be
// there.
var standIns = map[string]string{
	"make": "for target; do case $target in build) cp @BIN@/epplan bin/;; build-epd) cp @BIN@/epd bin/;; " +
		"*) exit 2;; esac; done\n",
	"scp": "[ \"$1\" = -r ] && shift\nwhile [ $# -gt 1 ]; do [ -e \"$1\" ] || { echo \"scp: $1: No such " +
		"file or directory\"; exit 1; }; shift; done\n",
	"systemctl": "case $1 in\ndaemon-reload) ;;\nenable|disable|restart|start|stop)\n" +
		"\tverb=$1; shift; [ \"$1\" = --now ] && shift\n" +
		"\tfor unit; do grep -q ^ExecStart= \"@LAB@/systemd/${unit%.service}.service\" || { echo \"Unit " +
		"$unit.service not found.\"; exit 1; }\n" +
		"\techo \"$verb ${unit%.service}\" >>@LAB@/out/systemctl; done;;\n*) exit 1;;\nesac\n",
}

// source is the project's folder as the page has it, with what it builds.
func (g *guideLab) source(built string) {
	g.Helper()
	for name, text := range standIns {
		g.write("standin/"+name,
			"#!/bin/sh\n"+strings.NewReplacer("@BIN@", built, "@LAB@", g.dir).Replace(text), 0o755)
	}
	for _, folder := range []string{"src/bin", "bin", "systemd", "default", "out"} {
		if err := os.MkdirAll(filepath.Join(g.dir, folder), 0o755); err != nil {
			g.Fatal(err)
		}
	}
	for _, name := range []string{"epplan", "epd"} {
		if out, err := exec.CommandContext(g.Context(), "install", "-m", "755", filepath.Join(built, name),
			g.bin).CombinedOutput(); err != nil {
			g.Fatalf("%v: %s", err, out)
		}
	}
	if err := os.Symlink(filepath.Join(shareddata.Root(g), "packaging"),
		filepath.Join(g.dir, "src", "packaging")); err != nil {
		g.Fatal(err)
	}
}

// startsUnits wants systemctl to have been told to start units.
func (g *guideLab) startsUnits(units ...string) {
	g.Helper()
	told := strings.Split(g.read("out/systemctl"), "\n")
	for _, unit := range units {
		if !slices.Contains(told, "enable "+unit) {
			g.Errorf("systemctl was told %q, and not to start %s", told, unit)
		}
	}
}

// siteHooks are those of a site that has all of its own.
var siteHooks = map[string]string{
	"prolog.sh": "#!/bin/sh\necho \"site prolog $SLURM_JOB_ID\" >>@LAB@/out/hooks\n",
	"epilog.sh": "#!/bin/sh\necho \"site epilog $SLURM_JOB_ID\" >>@LAB@/out/hooks\n",
	"job_submit.lua": "function slurm_job_submit(desc, parts, uid)\r\n\tdesc.comment = 'site'\r\n" +
		"\treturn slurm.SUCCESS\r\nend\r\n" +
		"function slurm_job_modify(desc, job, parts, uid)\r\n\treturn slurm.SUCCESS\r\nend\r\nreturn slurm.SUCCESS\r\n",
}

// answered is what stands for epplan answers a submission with.
const answered = `{"v":1,"admin_comment_hex":"6570706c616e3a7431"}`

func TestASitesOwnHooksRunBesideOursAndAreAsTheyWereAfterwards(t *testing.T) {
	g := newGuideLab(t, siteHooks)
	etc := filepath.Join(g.dir, "slurm", "etc")
	hooks := filepath.Join(g.dir, "slurm", "out", "hooks")
	g.write("site/epplan", "#!/bin/sh\n[ $1 = submit ] && echo '"+answered+"' && exit\n"+
		"echo \"our $1 $SLURM_JOB_ID\" >>"+hooks+"\n", 0o755)
	before := make(map[string]string)
	for _, name := range []string{"slurm.conf", "job_submit.lua", "prolog.sh"} {
		before[name] = g.read("slurm/etc/" + name)
	}
	install := "epplan install slurm --dir " + etc + " --program " + g.dir + "/site/epplan --popen"
	step := func(command string) string { return g.run(&doctest.Step{Prompt: "# ", Command: command}) }
	if out := step(install + " --edit-conf && scontrol reconfigure"); !strings.Contains(out,
		"Then: scontrol reconfigure") || strings.Contains(out, "exit status") {
		t.Fatal(out)
	}
	// As if slurmctld had no lua-socket.
	g.write("slurm/etc/epplan.lua",
		strings.ReplaceAll(g.read("slurm/etc/epplan.lua"), "pcall(require,", "pcall(error,"), 0o644)
	job := g.submit("true", "--gres=gpu:1")
	g.ends(job, "COMPLETED")
	id := name(job)
	g.eventually("both Epilogs ran", func() bool {
		return strings.Contains(g.read("slurm/out/hooks"), "site epilog "+id)
	})
	want := "site prolog " + id + "\nour prolog " + id + "\nour epilog " + id + "\nsite epilog " + id + "\n"
	if got := g.read("slurm/out/hooks"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if text := g.slurm("scontrol", "show", "job", id); !strings.Contains(text, "AdminComment=epplan:t1") ||
		!strings.Contains(text, "Comment=site") {
		t.Errorf("%s\n%s", text, g.read("slurm/log/slurmctld.log"))
	}
	g.write("slurm/etc/epplan.lua",
		strings.ReplaceAll(g.read("slurm/etc/epplan.lua"), "pcall(error,", "pcall(require,"), 0o644)
	for range 2 {
		if out := step(install + " --undo && scontrol reconfigure"); strings.Contains(out, "exit status") {
			t.Fatal(out)
		}
	}
	for name, text := range before {
		if got := g.read("slurm/etc/" + name); got != text {
			t.Errorf("%s is %q, was %q", name, got, text)
		}
	}
	last := g.submit("true", "--gres=gpu:1")
	g.ends(last, "COMPLETED")
	g.eventually("the site's Epilog ran", func() bool {
		return strings.HasSuffix(g.read("slurm/out/hooks"), "site epilog "+name(last)+"\n")
	})
	if got := g.read("slurm/out/hooks"); strings.Contains(got, "our prolog "+name(last)) {
		t.Errorf("ours ran after it was uninstalled: %q", got)
	}
	g.undrained()
}
