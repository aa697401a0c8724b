package munge

import (
	"net"
	"os"
	"testing"
	"time"
)

// portOf returns the port from which a dialer connects.
func portOf(t *testing.T, d *rootDialer) int {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // the test ends
	c, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close() //nolint:errcheck // after the client: its end keeps the port for a minute
	defer c.Close()      //nolint:errcheck // nothing was written
	from, ok := c.LocalAddr().(*net.TCPAddr)
	if !ok {
		t.Fatalf("from %v", c.LocalAddr())
	}
	return from.Port
}

func TestRootConnectsFromAPortThatOnlyRootHas(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root has these ports")
	}
	for range 500 { // more than there are such ports, each of which is in TIME-WAIT for a minute
		if port := portOf(t, &rootDialer{root: true}); port < lowestRootPort || port > highestRootPort {
			t.Errorf("port %d, want %d to %d", port, lowestRootPort, highestRootPort)
		}
	}
}

func TestWhoHasNoSuchPortConnectsAllTheSame(t *testing.T) {
	if port := portOf(t, &rootDialer{}); port <= highestRootPort {
		t.Errorf("a user's port is %d", port)
	}
	lately := &rootDialer{root: true}
	lately.fails.Store(time.Now().Add(time.Minute).UnixNano())
	if port := portOf(t, lately); port <= highestRootPort {
		t.Errorf("port %d, though something on the way doesn't like it", port)
	}
}
