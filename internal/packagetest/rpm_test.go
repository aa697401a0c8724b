package packagetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// rpm runs rpm on the machine, in a root of its own.
func (m *machine) rpm(args ...string) (string, error) {
	m.Helper()
	out, err := command(m.Context(), m.env, "rpm",
		append([]string{"--root", m.dir, "--nodeps"}, args...)...).CombinedOutput()
	return string(out), err
}

// mustRPM runs rpm and wants it to end well.
func (m *machine) mustRPM(args ...string) string {
	m.Helper()
	out, err := m.rpm(args...)
	if err != nil || strings.Contains(out, "scriptlet failed") {
		m.Fatalf("rpm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// rpms returns the packages of a version.
func rpms(t *testing.T, dir, version string) []string {
	t.Helper()
	var found []string
	for _, name := range packages() {
		paths, err := filepath.Glob(filepath.Join(dir, version,
			name+"-"+strings.TrimPrefix(version, "v")+"*.rpm"))
		if err != nil || len(paths) != 1 {
			t.Fatalf("%s: %q, %v: want one rpm", name, paths, err)
		}
		found = append(found, paths...)
	}
	return found
}

// redHat gives the machine what scripts of packages need, as one program, and a
// systemctl that notes what it is told.
func (m *machine) redHat() {
	m.Helper()
	busybox, err := exec.LookPath("busybox")
	shareddata.Need(m.T, err == nil, "there is no busybox")
	program, err := os.ReadFile(busybox)
	if err != nil {
		m.Fatal(err)
	}
	m.write("/bin/busybox", string(program), 0o755)
	for _, name := range []string{"sh", "ls", "grep", "sed", "cat", "rm"} {
		if err := os.Symlink("busybox", m.path("/bin/"+name)); err != nil {
			m.Fatal(err)
		}
	}
	m.write("/dev/null", "", 0o666)
	m.write("/bin/systemctl", "#!/bin/sh\necho \"$@\" >>/said\n", 0o755)
	m.write("/bin/getent", "#!/bin/sh\n[ \"$1 $2\" = 'passwd slurm' ]\n", 0o755) // Slurm is there
	m.said = m.path("/said")
}

func TestRPMsAreInstalledUpgradedAndErased(t *testing.T) {
	_, missing := exec.LookPath("rpm")
	shareddata.Need(t, missing == nil, "there is no rpm")
	dir, m := built(t), newMachine(t)
	m.redHat()

	m.mustRPM(append([]string{"-i"}, rpms(t, dir, older)...)...)
	m.want(true, "/usr/bin/epplan", "/usr/bin/epd", "/etc/epplan/config.toml", "/etc/default/epd-agent",
		"/usr/share/zsh/site-functions/_epplan", "/usr/share/man/man8/epd.8.gz")
	m.want(false, "/usr/share/zsh/vendor-completions")
	m.wantTold([]string{"daemon-reload"}, []string{"start", "enable"})
	if out, err := m.rpm(append([]string{"-V"}, packages()...)...); err != nil {
		t.Errorf("rpm finds other files than it installed: %v\n%s", err, out)
	}

	runs := previousDatabase(t, m.path("/var/lib/epplan-controller/records.db"))
	m.write("/etc/epplan/config.toml", advise, 0o644)
	m.mustRPM(append([]string{"-U"}, rpms(t, dir, newer)...)...)
	if got := m.read("/etc/epplan/config.toml"); got != advise {
		t.Errorf("the administrator's configuration isn't kept: %q", got)
	}
	m.wantTold(append(each("try-restart"), "daemon-reload"), []string{"disable", "stop", "\nstart"})
	m.upgraded(runs)

	m.slurmed()
	m.mustRPM("-e", "epplan-agent", "epplan-controller", "epplan-epd")
	m.wantTold([]string{
		"disable --now epd.service", "disable --now epd-agent.socket epd-agent.service",
		"epd-controller-submit.socket",
	}, nil)
	m.removable(func() (string, error) { return m.rpm("-e", "epplan") })
	m.harmless()
	m.want(true, "/var/lib/epplan-controller/records.db", "/etc/epplan/config.toml.rpmsave")
	m.want(false, "/usr/bin/epd", "/usr/bin/epplan", "/usr/lib/systemd/system/epd.service",
		"/usr/share/epplan", "/usr/share/doc/epplan", "/etc/epplan/config.toml")
}
