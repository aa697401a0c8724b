package tutorial

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// labFolder returns a folder as that of a lab; one that is up has a hostile file.
func labFolder(t *testing.T, up bool) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "lab")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if up {
		if err := os.WriteFile(filepath.Join(dir, "lab.env"), []byte("GPU=$(reboot)\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The usual folder of a lab is in /tmp, where anybody may be first: what is in it
// becomes commands of root's.
func TestTheLabTouchesNoFolderThatSomebodyElseMadeOrMayWriteTo(t *testing.T) {
	shareddata.Need(t, os.Geteuid() == 0, "only root gives folders away")
	text, err := os.ReadFile("../../scripts/lab.sh")
	if err != nil {
		t.Fatal(err)
	}
	here := t.TempDir() // without programs: nothing can be started
	script := filepath.Join(here, "scripts", "lab.sh")
	if err := os.Mkdir(filepath.Dir(script), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(script, text, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(dir string) error{
		"somebody else's": func(dir string) error { return os.Chown(dir, 4711, 4711) },
		"open to all":     func(dir string) error { return os.Chmod(dir, 0o777) },
		"a link": func(dir string) error {
			return errors.Join(os.Rename(dir, dir+"-real"), os.Symlink(dir+"-real", dir))
		},
	} {
		for _, action := range []string{"up", "env", "down"} {
			dir := labFolder(t, action != "up")
			if err := spoil(dir); err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), script, action, "--dir", dir).CombinedOutput()
			if err == nil || !strings.Contains(string(out), "nobody else may write to") ||
				strings.Contains(string(out), "reboot") {
				t.Errorf("%s of a folder that is %s: %v\n%s", action, name, err, out)
			}
			if _, err := os.Stat(dir); err != nil {
				t.Errorf("%s of a folder that is %s: %v", action, name, err)
			}
		}
	}
}
