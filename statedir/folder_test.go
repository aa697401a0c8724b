package statedir_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/epplan/epplan/statedir"
)

func TestAFolderIsForItsOwnerAloneAndNothingOutsideOfItIsReached(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "journal")
	f, err := statedir.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	file, err := f.Create("a.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write([]byte("text")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(file.Sync(), file.Close(), f.Rename("a.json", "b.json"), f.Sync()); err != nil {
		t.Fatal(err)
	}
	if data, err := f.ReadFile("b.json"); err != nil || string(data) != "text" {
		t.Errorf("%q, %v", data, err)
	}
	for path, want := range map[string]fs.FileMode{dir: 0o700, filepath.Join(dir, "b.json"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link.json")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../x", "/etc/passwd", "link.json"} {
		if _, err := f.ReadFile(name); err == nil {
			t.Errorf("%s was read", name)
		}
	}
	if names, err := f.Names(); err != nil || len(names) != 2 {
		t.Errorf("%v, %v", names, err)
	}
	if err := f.Remove("c.json"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("remove: %v", err)
	}
}
