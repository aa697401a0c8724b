package packagetest

import (
	"os"
	"path/filepath"
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
