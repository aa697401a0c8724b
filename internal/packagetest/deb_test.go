package packagetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// dpkg runs dpkg on the machine; scripts of packages run with DPKG_ROOT, not in
// a root of their own, so that nothing else need be there.
func (m *machine) dpkg(args ...string) (string, error) {
	m.Helper()
	all := append([]string{
		"--root=" + m.dir, "--force-script-chrootless", "--log=" + filepath.Join(m.dir, "dpkg.log"),
	}, args...)
	out, err := command(m.Context(), m.env, "dpkg", all...).CombinedOutput()
	return string(out), err
}

// mustDpkg runs dpkg and wants it to end well.
func (m *machine) mustDpkg(args ...string) string {
	m.Helper()
	out, err := m.dpkg(args...)
	if err != nil {
		m.Fatalf("dpkg %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// debs returns the packages of a version.
func debs(t *testing.T, dir, version string) []string {
	t.Helper()
	var found []string
	for _, name := range packages() {
		paths, err := filepath.Glob(filepath.Join(dir, version, name+"_*.deb"))
		if err != nil || len(paths) != 1 {
			t.Fatalf("%s: %q, %v: want one deb", name, paths, err)
		}
		found = append(found, paths...)
	}
	return found
}

// debian makes the machine one of Debian's.
func (m *machine) debian() {
	m.write("/var/lib/dpkg/status", "Package: libc6\nStatus: install ok installed\n"+
		"Architecture: "+strings.TrimSpace(do(m.T, nil, "dpkg", "--print-architecture"))+
		"\nMaintainer: nobody\nDescription: C library\nVersion: 2.36-9\n\n", 0o644)
	for _, folder := range []string{"info", "updates", "triggers"} {
		m.write("/var/lib/dpkg/"+folder+"/.keep", "", 0o644)
	}
}

const advise = "[live]\nmode = \"advise\"\n"

// hookFiles are our Prolog and Epilog.
var hookFiles = []string{"epplan-prolog.d/10-epplan", "epplan-epilog.d/zzz-epplan"}

// slurmed makes the machine one whose Slurm calls epplan.
func (m *machine) slurmed() {
	m.Helper()
	m.write("/etc/slurm/slurm.conf", "ClusterName=cluster\nProlog=/etc/slurm/epplan-prolog.d/*\n"+
		"Epilog=/etc/slurm/epplan-epilog.d/* # ours\n"+
		"ResumeProgram=/etc/slurm/epplan-resume\n", 0o644)
	m.write("/etc/slurm/epplan-resume", "#!/bin/sh\n"+
		"exec /usr/bin/epplan resume --run /usr/local/sbin/node-on \"$1\"\n", 0o755)
	for _, name := range hookFiles {
		m.write("/etc/slurm/"+name, m.read("/usr/share/epplan/slurm/"+name), 0o755)
	}
}

// removable checks that epplan isn't removed while nodes would never wake
// without it, and makes it removable.
func (m *machine) removable(remove func() (string, error)) string {
	m.Helper()
	out, err := remove()
	if err == nil || !strings.Contains(out, "/etc/slurm/epplan-resume as ResumeProgram") ||
		!m.there("/usr/bin/epplan") {
		m.Errorf("epplan was removed, and wakes no node any more: %v\n%s", err, out)
	}
	m.write("/etc/slurm/slurm.conf",
		strings.ReplaceAll(m.read("/etc/slurm/slurm.conf"), "ResumeProgram", "# ResumeProgram"), 0o644)
	if out, err = remove(); err != nil {
		m.Fatalf("%v\n%s", err, out)
	}
	for _, hook := range []string{"Prolog", "Epilog"} {
		if !strings.Contains(out, "d/* as "+hook) {
			m.Errorf("nobody is told of the %s in slurm.conf:\n%s", hook, out)
		}
	}
	return out
}

// harmless checks that hooks that are left do nothing where epplan is gone.
func (m *machine) harmless() {
	m.Helper()
	for _, name := range hookFiles {
		path := m.path("/etc/slurm/" + name)
		text := strings.ReplaceAll(m.read("/etc/slurm/"+name), "/usr/bin/epplan", m.path("/usr/bin/epplan"))
		if !strings.Contains(text, m.dir) {
			m.Errorf("%s calls no epplan", path)
		}
		if out, err := exec.CommandContext(m.Context(), "sh", "-c", text).CombinedOutput(); err != nil ||
			len(out) > 0 {
			m.Errorf("%s drains the node: %v, %s", path, err, out)
		}
	}
}

func TestDebsAreInstalledUpgradedRemovedAndPurged(t *testing.T) {
	_, missing := exec.LookPath("dpkg")
	shareddata.Need(t, missing == nil, "there is no dpkg")
	dir, m := built(t), newMachine(t)
	m.debian()

	m.mustDpkg(append([]string{"-i"}, debs(t, dir, older)...)...)
	m.want(true, "/usr/bin/epplan", "/usr/bin/epd", "/etc/epplan/config.toml", "/etc/default/epd-agent",
		"/run/epplan",
		"/usr/share/zsh/vendor-completions/_epd", "/usr/share/man/man1/epplan-plan.1.gz")
	m.want(false, "/usr/share/zsh/site-functions")
	m.wantTold([]string{"daemon-reload"}, []string{"start", "enable"})
	if users := m.read("/etc/passwd"); !strings.Contains(users, "slurm:x:64030:64030:") {
		t.Errorf("Slurm's user isn't there: %q", users)
	}
	do(t, nil, m.path("/usr/bin/epplan"), "config", "check", m.path("/etc/epplan/config.toml"))

	runs := previousDatabase(t, m.path("/var/lib/epplan-controller/records.db"))
	m.write("/etc/epplan/config.toml", advise, 0o644)
	out := m.mustDpkg(append([]string{"-i"}, debs(t, dir, newer)...)...)
	if !strings.Contains(out, "over (0.1.0-1)") || m.read("/etc/epplan/config.toml") != advise {
		t.Errorf("the administrator's configuration isn't kept: %q\n%s",
			m.read("/etc/epplan/config.toml"), out)
	}
	m.wantTold(append(each("try-restart"), "daemon-reload"), []string{"disable", "stop", "\nstart"})
	m.upgraded(runs)

	m.slurmed()
	m.lock()
	m.mustDpkg("-r", "epplan-agent", "epplan-controller", "epplan-epd")
	m.wantTold([]string{
		"disable --now epd.service", "disable --now epd-agent.socket epd-agent.service",
		"epd-controller-submit.socket",
	}, nil)
	if m.locked() {
		t.Error("clocks weren't given back")
	}
	m.removable(func() (string, error) { return m.dpkg("-r", "epplan") })
	m.harmless()
	m.want(true, "/var/lib/epplan-controller/records.db", "/var/lib/epplan/journal",
		"/etc/epplan/config.toml", "/etc/default/epd-controller")
	m.want(false, "/usr/bin/epd", "/usr/bin/epplan", "/usr/lib/systemd/system/epd.service",
		"/usr/share/epplan")

	m.mustDpkg(append([]string{"-P"}, packages()...)...)
	if left := m.left("/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow", "/etc/.pwd.lock",
		"/etc/slurm/", "/var/lib/dpkg/", "/run/systemd/", "/dpkg.log"); len(left) > 0 {
		t.Errorf("a purge leaves %q", left)
	}
	if _, err := os.Stat(m.path("/etc/slurm/slurm.conf")); err != nil {
		t.Error("a purge takes the site's own files")
	}
}
