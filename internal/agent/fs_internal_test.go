package agent

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/epplan/epplan/statedir"
)

// opened returns a folder of a test and its path.
func opened(t *testing.T) (folder *statedir.Folder, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "journal")
	folder, err := statedir.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = folder.Close() })
	return folder, dir
}

func TestNothingThatWasSetAsideIsOverwritten(t *testing.T) {
	folder, dir := opened(t)
	const name = "GPU-1.json"
	for _, text := range []string{"one", "two", "three"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := statedir.SetAside(folder, name); err != nil {
			t.Fatal(err)
		}
	}
	for file, want := range map[string]string{
		name + ".aside": "one", name + "-1.aside": "two",
		name + "-2.aside": "three",
	} {
		if text, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", file, text, err)
		}
	}
	if names, foreign, err := liveFiles(folder, true); err != nil || len(names)+len(foreign) != 0 {
		t.Errorf("%q, %q, %v", names, foreign, err)
	}
}

func TestAFileThatSomebodyElseMayHaveWrittenIsForeign(t *testing.T) {
	folder, dir := opened(t)
	path := filepath.Join(dir, "GPU-1.json")
	for name, lay := range map[string]func() error{
		"a link": func() error {
			return errors.Join(os.WriteFile(path+"x", nil, 0o600), os.Symlink("GPU-1.jsonx", path))
		},
		"a pipe":   func() error { return syscall.Mkfifo(path, 0o600) },
		"a folder": func() error { return os.Mkdir(path, 0o700) },
		"writable": func() error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o622))
		},
		"somebody else's": func() error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Chown(path, 4711, 0))
		},
		"larger than ours": func() error { return os.WriteFile(path, make([]byte, 1<<20+1), 0o600) },
	} {
		if name == "somebody else's" && os.Geteuid() != 0 {
			t.Log("only root gives files away")
			continue
		}
		if err := lay(); err != nil {
			t.Fatal(err)
		}
		if text, err := folder.ReadFile("GPU-1.json"); !errors.Is(err, statedir.ErrForeign) {
			t.Errorf("%s: %.20q, %v", name, text, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

func TestADraftThatIsALinkIsReplacedAndNotFollowed(t *testing.T) {
	folder, dir := opened(t)
	other := filepath.Join(dir, "GPU-2.json")
	if err := errors.Join(os.WriteFile(other, []byte("theirs"), 0o600),
		os.Symlink("GPU-2.json", filepath.Join(dir, "GPU-1.tmp"))); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(folder, "GPU-1"+current, []byte("ours")); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"GPU-1.json": "ours", "GPU-2.json": "theirs"} {
		if text, err := folder.ReadFile(file); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", file, text, err)
		}
	}
}

func TestAFolderOfSomebodyElseIsReadAndNeverChanged(t *testing.T) {
	_, dir := opened(t)
	if err := os.WriteFile(filepath.Join(dir, "GPU-1.json"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	folder, err := statedir.OpenToGiveBack(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = folder.Close() }()
	if err := writeFile(folder, "GPU-2"+current, nil); err == nil {
		t.Error("a file was written")
	}
	if retireFile(folder, "GPU-1") == nil || statedir.SetAside(folder, "GPU-1.json") == nil ||
		folder.Remove("GPU-1.json") == nil {
		t.Error("a file was taken away")
	}
	if names, err := folder.Names(); err != nil || !slices.Equal(names, []string{"GPU-1.json"}) {
		t.Errorf("%q, %v", names, err)
	}
	if text, err := folder.ReadFile("GPU-1.json"); err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
}
