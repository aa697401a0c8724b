package packagetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestASystemdThatDoesNotAnswerLeavesNoPackageHalfInstalled(t *testing.T) {
	root, programs := t.TempDir(), t.TempDir()
	for _, folder := range []string{"run/systemd/system", "etc"} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range map[string]string{
		filepath.Join(root, "etc/passwd"):    "slurm:x:64030:64030::/nonexistent:/usr/sbin/nologin\n",
		filepath.Join(programs, "systemctl"): "#!/bin/sh\necho 'Failed to connect to bus' >&2\nexit 1\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"epplan-epd", "epplan-controller", "epplan-agent"} {
		for action, args := range map[string][]string{
			".postinst": {"configure", "0.1.0-1"},
			".prerm":    {"remove"}, ".postrm": {"remove"},
		} {
			script := filepath.Join("../../packaging/scripts", name+action)
			cmd := command(t.Context(),
				[]string{"DPKG_ROOT=" + root, "PATH=" + programs + ":" + os.Getenv("PATH")}, "sh",
				append([]string{script}, args...)...)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s%s %v: %v\n%s", name, action, args, err, out)
			}
		}
	}
}

// Before the programs go, they take back their changes in Slurm, or say with which command to do so.
func TestARemovedPackageTakesSlurmsQueueBackOrSaysHow(t *testing.T) {
	for name, state := range map[string]string{
		"epplan-controller": "/var/lib/epplan-controller", "epplan-epd": "/var/lib/epplan",
	} {
		for status, said := range map[string]string{"0": "", "1": "epd restore --state " + state + "\n"} {
			root := t.TempDir()
			for path, text := range map[string]string{
				state + "/levers/levers.json": "{}",
				"/usr/bin/epd":                "#!/bin/sh\necho \"$*\" >>\"$0.asked\"\nexit " + status + "\n",
			} {
				if err := os.MkdirAll(filepath.Dir(root+path), 0o750); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(root+path, []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			script := filepath.Join("../../packaging/scripts", name+".prerm")
			out, err := command(t.Context(), []string{"DPKG_ROOT=" + root, "PATH=" + os.Getenv("PATH")}, "sh", script,
				"remove").CombinedOutput()
			if err != nil || (said == "") != (len(out) == 0) || !strings.HasSuffix(string(out), said) {
				t.Errorf("%s, epd ends with %s: %v: %q", name, status, err, out)
			}
			asked, err := os.ReadFile(root + "/usr/bin/epd.asked")
			want := "--role controller restore --state " + root + state + "\n"
			if err != nil || string(asked) != want {
				t.Errorf("%s: epd was asked %q, %v, want %q", name, asked, err, want)
			}
		}
	}
}
