package slurmlab

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"testing"
)

// What up.sh listens at, from a lab's base on, and what it leaves alone.
const (
	slurmctld = 17
	slurmdbd  = 19
	// Spare is a port of the lab that is the test's own.
	Spare   = 90
	reserve = 91
	slurmd  = 101 // of the first node
)

// Bases of labs lie in this range: below the ports that the kernel gives to whoever
// asks for any, and below those of scripts/lab.sh.
const (
	firstBase = 10000
	lastBase  = 25800
	baseStep  = 200
	bases     = (lastBase-firstBase)/baseStep + 1
)

// Ports reserves the ports of a lab of so many nodes until the test ends, also
// among the programs that test other packages at the same time, and returns
// their base.
func Ports(tb testing.TB, nodes int) int {
	tb.Helper()
	for i := range bases {
		base := firstBase + (os.Getpid()+i)%bases*baseStep
		held, err := listen(tb.Context(), base+reserve)
		if err != nil {
			continue // another lab's
		}
		if !anyTaken(tb.Context(), base, nodes) {
			tb.Cleanup(func() { _ = held.Close() })
			return base
		}
		_ = held.Close()
	}
	tb.Fatal("no ports are free")
	return 0
}

// Address returns a port of the loopback interface that is the test's own until it
// ends: whoever binds it there may come and go.
func Address(tb testing.TB) string {
	tb.Helper()
	return "127.0.0.1:" + strconv.Itoa(Ports(tb, 0)+Spare)
}

// anyTaken reports whether anything listens at the ports of a lab.
func anyTaken(ctx context.Context, base, nodes int) bool {
	wanted := append(make([]int, 0, 3+nodes), base+slurmctld, base+slurmdbd, base+Spare)
	for i := range nodes {
		wanted = append(wanted, base+slurmd+i)
	}
	for _, port := range wanted {
		l, err := listen(ctx, port)
		if errors.Join(err, closed(l)) != nil {
			return true
		}
	}
	return false
}

func listen(ctx context.Context, port int) (net.Listener, error) {
	return new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:"+strconv.Itoa(port))
}

func closed(l net.Listener) error {
	if l == nil {
		return nil
	}
	return l.Close()
}
