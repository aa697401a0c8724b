package statedir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stranger is a user who is neither root nor who runs the tests.
const stranger = 4711

// public returns a folder that everybody may look into, whatever the umask is.
func public(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	must(t, os.Chmod(dir, 0o755))
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// folder makes a folder with a mode, whatever the umask is.
func folder(t *testing.T, path string, mode fs.FileMode) string {
	t.Helper()
	must(t, os.MkdirAll(path, 0o755))
	must(t, os.Chmod(path, mode))
	return path
}

// insecure wants an InsecureError of a path that says something.
func insecure(t *testing.T, err error, path, what string) {
	t.Helper()
	e, ok := errors.AsType[*InsecureError](err)
	if !ok || e.Path != path || !strings.Contains(err.Error(), what) || e.Mend == "" {
		t.Errorf("got %v, want %s and %q", err, path, what)
	}
}

func TestAFolderThatOthersMayWriteToIsRefused(t *testing.T) {
	dir := public(t)
	for mode, want := range map[fs.FileMode]string{
		0o700: "", 0o755: "", 0o750: "", 0o770: "has mode 0770, want 0750", 0o702: "has mode 0702, want 0700",
		0o777 | fs.ModeSticky: "has mode 0777, want 0755",
	} {
		path := folder(t, filepath.Join(dir, "state"), mode)
		for name, err := range map[string]error{"Check": Check(path), "Make": Make(path)} {
			if want == "" && err != nil {
				t.Errorf("%s of mode %v: %v", name, mode, err)
			} else if want != "" {
				insecure(t, err, path, want)
				insecure(t, err, path, "chmod go-w "+path)
			}
		}
	}
}

func TestAFolderOnTheWayThatOthersMayWriteToIsRefusedUnlessTheyCantExchangeWhatIsBelow(t *testing.T) {
	dir := public(t)
	above := filepath.Join(dir, "above")
	path := folder(t, filepath.Join(above, "state"), 0o700)
	must(t, os.Chmod(above, 0o775))
	insecure(t, Check(path), above, "or chmod go-w "+above)
	insecure(t, Make(filepath.Join(path, "journal")), above, "others may exchange what lies below")
	must(t, os.Chmod(above, 0o777|fs.ModeSticky))
	if err := Check(path); err != nil {
		t.Errorf("below a sticky one: %v", err)
	}
}

func TestWhatBelongsToAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	dir := public(t)
	above := folder(t, filepath.Join(dir, "above"), 0o755)
	path := folder(t, filepath.Join(above, "state"), 0o700)
	give := func(path string, uid int) { t.Helper(); must(t, os.Lchown(path, uid, 0)) }

	give(path, stranger)
	insecure(t, Check(path), path, "belongs to user 4711, want root; to mend it: chown -R 0 "+path)
	insecure(t, Make(filepath.Join(path, "journal")), path, "name a folder that lies below root's alone")
	if _, err := os.Lstat(filepath.Join(path, "journal")); err == nil {
		t.Error("a folder was made in a stranger's")
	}
	if err := CheckFor(path, stranger); err != nil {
		t.Errorf("the stranger's own: %v", err)
	}
	insecure(t, CheckFor(path, stranger+1), path, "belongs to user 4711, want root or user 4712")

	give(path, 0)
	give(above, stranger)
	insecure(t, Check(path), above, "belongs to user 4711")
	must(t, os.Chmod(above, 0o777|fs.ModeSticky))
	insecure(t, Check(path), above, "belongs to user 4711")
	if err := CheckFor(path, stranger); err != nil {
		t.Errorf("root's folder below the stranger's own: %v", err)
	}
}

func TestALinkIsFollowedIfItIsRootsAndLeadsToWhatIsGood(t *testing.T) {
	dir := public(t)
	disk := folder(t, filepath.Join(dir, "disk"), 0o755)
	link := filepath.Join(dir, "link")
	for _, target := range []string{disk, "disk", "./disk/../disk", "../" + filepath.Base(dir) + "/disk/"} {
		must(t, os.Symlink(target, link))
		path := filepath.Join(link, "state")
		if err := Make(path); err != nil {
			t.Errorf("%s: %v", target, err)
		}
		if _, err := os.Stat(filepath.Join(disk, "state")); err != nil {
			t.Errorf("%s: %v", target, err)
		}
		must(t, os.Chmod(disk, 0o777))
		insecure(t, Check(path), disk, "others may exchange what lies below")
		insecure(t, Check(link), disk, "chmod go-w "+disk)
		must(t, os.Chmod(disk, 0o755))
		if os.Geteuid() == 0 {
			must(t, os.Lchown(link, stranger, 0))
			insecure(t, Check(path), link, "is a symbolic link that belongs to user 4711")
			insecure(t, Make(link), link, "to mend it: rm "+link)
		}
		must(t, os.Remove(link))
		must(t, os.Remove(filepath.Join(disk, "state")))
	}

	must(t, os.Symlink("link", link))
	if err := Check(link); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a link to itself: %v", err)
	}
	must(t, os.Remove(link))
	must(t, os.Symlink(filepath.Join(dir, "not", "mounted"), link))
	if err := Make(filepath.Join(link, "state")); !errors.Is(err, fs.ErrNotExist) ||
		!strings.Contains(err.Error(), "leads to") {
		t.Errorf("a link to nowhere: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "not")); err == nil {
		t.Error("what a link to nowhere names was made")
	}
}

func TestAFolderIsMadeForItsOwnerAndItsNameAndThoseAboveAreDurable(t *testing.T) {
	dir := public(t)
	path := filepath.Join(dir, "a", "b", "c")
	var did []string
	mkdir := func(path string, mode fs.FileMode) error {
		did = append(did, "mkdir "+path)
		return os.Mkdir(path, mode)
	}
	sync := func(path string) error {
		did = append(did, "sync "+path)
		return Sync(path)
	}
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "a", "b")
	for _, want := range [][]string{
		{"mkdir " + a, "sync " + dir, "mkdir " + b, "sync " + a, "mkdir " + path, "sync " + b},
		{"sync " + b}, // it may have been made just before a crash
	} {
		did = nil
		if err := makeWith(path, mkdir, sync); err != nil || !slices.Equal(did, want) {
			t.Errorf("%q, %v, want %q", did, err, want)
		}
	}
	for _, made := range []string{a, b, path} {
		if info, err := os.Stat(made); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", made, info.Mode(), err)
		}
	}
	broken := errors.New("broken")
	if err := makeWith(filepath.Join(path, "d"), os.Mkdir,
		func(string) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("a name that isn't durable: %v", err)
	}
	denied := func(string) error { return fs.ErrPermission }
	if err := makeWith(path, os.Mkdir, denied); err != nil {
		t.Errorf("below a folder that can't be read: %v", err)
	}
}

func TestAFileIsNoFolderAndWhatIsMissingIsMissing(t *testing.T) {
	dir := public(t)
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	for _, path := range []string{filepath.Join(dir, "file"), filepath.Join(dir, "file", "state")} {
		if err := errors.Join(Check(path)); !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := Check(filepath.Join(dir, "none", "state")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := CheckFile(filepath.Join(dir, "none")); err != nil {
		t.Errorf("a file that isn't there: %v", err)
	}
}

func TestOnlyAFileOfOursIsOpened(t *testing.T) {
	dir := public(t)
	outside := filepath.Join(t.TempDir(), "outside")
	path := filepath.Join(dir, "file")
	tries := map[string]func() error{ // what lies at the path
		"is a symbolic link": func() error { return os.Symlink(outside, path) },
		"isn't a file":       func() error { return syscall.Mkfifo(path, 0o600) },
		"has mode 0620, want 0600": func() error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o620))
		},
		"belongs to user 4711, want ro": func() error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Chown(path, stranger, 0))
		},
		"is a symbolic link, want a fil": func() error { return os.Symlink("/dev/null", path) },
	}
	for want, lay := range tries {
		if strings.HasPrefix(want, "belongs") && os.Geteuid() != 0 {
			t.Log("only root gives files away")
			continue
		}
		must(t, lay())
		for _, flag := range []int{os.O_RDONLY, os.O_RDWR | os.O_CREATE, os.O_WRONLY} {
			_, err := OpenFile(path, flag, 0o600)
			insecure(t, err, path, want)
		}
		insecure(t, CheckFile(path), path, want)
		must(t, os.Remove(path))
	}
	if _, err := os.Lstat(outside); err == nil {
		t.Error("what a link leads to was made")
	}
	f, err := OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	must(t, err)
	must(t, f.Close())
	if err := CheckFile(path); err != nil {
		t.Error(err)
	}
	must(t, os.Chmod(dir, 0o777))
	insecure(t, CheckFile(path), dir, "others may write to it")
}

func TestAFileIsOpenedOnceNobodyElseHasIt(t *testing.T) {
	path := filepath.Join(folder(t, filepath.Join(public(t), "own"), 0o700), "state")
	first, err := OpenExclusive(path, os.O_CREATE|os.O_RDWR, 0o600)
	must(t, err)
	opened := make(chan error, 1)
	go func() {
		f, err := OpenExclusive(path, os.O_RDWR, 0o600)
		if err == nil {
			err = f.Close()
		}
		opened <- err
	}()
	select {
	case err := <-opened:
		t.Fatalf("opened while another has it: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	must(t, first.Close())
	must(t, <-opened)
	if _, err := OpenExclusive(path+"2", os.O_RDWR, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that isn't there: %v", err)
	}
}

func TestAFreeNameIsOneThatNothingHas(t *testing.T) {
	has := map[string]bool{}
	for _, want := range []string{"x", "x-1", "x-2"} {
		name, err := FreeName("x", func(name string) (bool, error) { return has[name], nil })
		if err != nil || name != want {
			t.Errorf("%s, %v, want %s", name, err, want)
		}
		has[name] = true
	}
	if _, err := FreeName("x", func(string) (bool, error) { return true, nil }); !errors.Is(err,
		fs.ErrExist) {
		t.Errorf("no name is free: %v", err)
	}
	broken := errors.New("broken")
	if _, err := FreeName("x", func(string) (bool, error) { return false, broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
}

func TestAPathIsAWordOfAShellsCommand(t *testing.T) {
	err := &InsecureError{Path: "/var/a b'c", What: "is odd"}
	if want := `'/var/a b'\''c' is odd`; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%s, want %s", err, want)
	}
}

func TestAFileIsReplacedWholeAndKeepsItsMode(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "list")
	for _, text := range []string{"a longer text", "short"} {
		mode := fs.FileMode(0o644)
		if text == "short" {
			mode = 0o600 // no longer asked for: the file is there
		}
		if err := WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		info, missing := os.Stat(path)
		if err != nil || missing != nil || string(got) != text || info.Mode() != 0o644 {
			t.Errorf("%q of mode %v, errors %v and %v, want %q of 0644", got, info.Mode(), err, missing, text)
		}
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("%v, error %v, want the file alone", names, err)
	}
}
