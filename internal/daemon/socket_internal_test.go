package daemon

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestAUserHasOnlySoManyConnectionsOpen(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	k := &doorkeeper{Listener: l, open: make(map[int64]int)}
	defer k.Close() //nolint:errcheck // it was open
	const other = 4711
	for range maxPerUser {
		if !k.enter(other) {
			t.Fatal("not let in")
		}
	}
	if k.enter(other) {
		t.Error("one more is let in")
	}
	if !k.enter(0) {
		t.Error("root isn't let in")
	}
	k.leave(other)
	if !k.enter(other) {
		t.Error("not let in again")
	}
	for k.all < maxConns {
		k.enter(0)
	}
	if k.enter(0) || k.enter(other+1) {
		t.Error("more than all are let in")
	}
}

func TestTheOtherEndOfAConnectionIsKnownAndCountedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	k := &doorkeeper{Listener: l, open: make(map[int64]int)}
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
