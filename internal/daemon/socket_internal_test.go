package daemon

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

func TestUsersAndMachinesHaveOnlySoManyConnectionsOpen(t *testing.T) {
	k := &doorkeeper{open: make(map[string]int)}
	for range maxOfOne {
		if !k.enter("4711") {
			t.Fatal("not let in")
		}
	}
	if k.enter("4711") {
		t.Error("one more is let in")
	}
	if !k.enter("") {
		t.Error("Slurm isn't let in")
	}
	k.leave("4711")
	if !k.enter("4711") {
		t.Error("not let in again")
	}
	for i := range maxConns { // others, as many as there can be
		k.enter("10.0.0." + strconv.Itoa(i))
	}
	if k.others != maxOthers || !k.enter("") {
		t.Errorf("%d others have left no room for Slurm", k.others)
	}
	for k.all < maxConns {
		k.enter("")
	}
	if k.enter("") || k.enter("4711") {
		t.Error("more than all are let in")
	}
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

func TestTheOtherEndOfAConnectionIsKnownAndCountedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	k := &doorkeeper{Listener: l, full: func(int64) bool { return false }, open: make(map[string]int)}
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
	if k.all != 0 || len(k.open) != 0 {
		t.Errorf("%d open, of users %v", k.all, k.open)
	}
}
