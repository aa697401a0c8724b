package daemon

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/epplan/epplan/internal/testkit/shareddata"
)

func TestMain(m *testing.M) {
	shareddata.ShortTemp()
	os.Exit(m.Run())
}

func TestASocketWhoseQueueIsFullIsServed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd) //nolint:errcheck // the test ends
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: path}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	for { // nobody accepts
		c, err := new(net.Dialer).DialContext(t.Context(), "unix", path)
		if err != nil {
			break
		}
		defer c.Close() //nolint:errcheck // nothing was written
	}
	if l, err := Listen(t.Context(), path, 0o600); err == nil {
		_ = l.Close()
		t.Error("the socket of a busy epd was taken")
	}
}

// Whoever owns the folder of root's socket could have root open any file to everybody.
func TestOnlyASocketGetsASocketsPermissions(t *testing.T) {
	dir := t.TempDir()
	secret, link := filepath.Join(dir, "shadow"), filepath.Join(dir, "submit.sock")
	if err := errors.Join(os.WriteFile(secret, nil, 0o600), os.Symlink(secret, link)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, secret} {
		if err := chmodSocket(path, 0o666); err == nil {
			t.Errorf("%s is taken for a socket", path)
		}
	}
	if info, err := os.Stat(secret); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// The mask of permissions is the process's: what others make while a socket is
// opened must not be closed by it.
func TestFilesThatAreMadeWhileASocketIsOpenedKeepTheirPermissions(t *testing.T) {
	dir := t.TempDir()
	mode := func(path string) fs.FileMode {
		info, err := os.Stat(path)
		if err != nil {
			t.Error(err)
			return 0
		}
		return info.Mode().Perm()
	}
	first := filepath.Join(dir, "first")
	if err := os.Mkdir(first, 0o755); err != nil {
		t.Fatal(err)
	}
	want := mode(first)
	var made atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for made.Load() < 300 {
			path := filepath.Join(dir, strconv.FormatInt(made.Add(1), 10))
			if err := os.Mkdir(path, 0o755); err != nil {
				t.Error(err)
			} else if got := mode(path); got != want {
				t.Errorf("folder %d has mode %v, want %v", made.Load(), got, want)
				return
			}
		}
	}()
	for {
		select {
		case <-done:
			return
		default:
		}
		l, err := Listen(t.Context(), filepath.Join(dir, "s"), 0o600)
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
	}
}

func TestASocketsPathThatIsTooLongIsNamed(t *testing.T) {
	dir := t.TempDir()
	longest := filepath.Join(dir, strings.Repeat("s", maxSocketPath-len(dir)-1))
	l, err := Listen(t.Context(), longest, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	_, err = Listen(t.Context(), longest+"s", 0o600)
	if want := longest + "s: its path has 108 bytes, want at most 107"; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

func TestASocketIsClosedToOthersFromItsBeginning(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := (&net.ListenConfig{Control: restrictToOwner}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // it was open
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestTheOtherEndOfAConnectionIsKnownAndCountedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	k := newConnLimiter(l, Door{})
	defer k.Close() //nolint:errcheck // it was open
	caller, err := new(net.Dialer).DialContext(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close() //nolint:errcheck // nothing was written
	c, err := k.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if p, ok := c.(*peerConn); !ok || p.uid != int64(os.Getuid()) || k.all != 1 {
		t.Errorf("%+v, %d open", c, k.all)
	}
	_ = c.Close()
	_ = c.Close()
	if k.all != 0 || len(k.groups) != 0 {
		t.Errorf("%d open, of users %v", k.all, k.groups)
	}
}
