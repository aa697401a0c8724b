package livetest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/internal/testkit/slurmlab"
)

// machine is a network of its own for one node of a lab: its slurmd and its epd are at an address that
// isn't the controller's machine's.
type machine struct {
	space, network, head string // the name, what addresses begin with, and the lab's
	addrs                []string
}

// machineAddrs is how many addresses it has; the first one is its node's.
const machineAddrs = 28

// layMachine makes the network. Labs are told apart by their ports.
func (l *lab) layMachine() {
	l.Helper()
	_, err := exec.LookPath("ip")
	shareddata.Need(l, err == nil, "a network of its own needs ip: run scripts/test-packages.sh")
	const labs = 200 // ports apart, see slurmlab.Ports
	network := fmt.Sprintf("198.18.%d.", l.base/labs)
	m := &machine{space: fmt.Sprintf("epplan-lab%d", l.base), network: network, head: network + "1"}
	for i := range machineAddrs {
		m.addrs = append(m.addrs, network+strconv.Itoa(2+i))
	}
	outside, inside := fmt.Sprintf("el%da", l.base), fmt.Sprintf("el%db", l.base)
	l.ip("netns", "add", m.space)
	l.Cleanup(func() {
		_ = exec.Command("ip", "link", "del", outside).Run()  //nolint:noctx // both ends
		_ = exec.Command("ip", "netns", "del", m.space).Run() //nolint:noctx // at once
	})
	l.ip("link", "add", outside, "type", "veth", "peer", "name", inside, "netns", m.space)
	l.ip("addr", "add", m.head+"/27", "dev", outside)
	l.ip("link", "set", outside, "up")
	for _, addr := range m.addrs {
		l.ip("-n", m.space, "addr", "add", addr+"/27", "dev", inside)
	}
	l.ip("-n", m.space, "link", "set", inside, "up")
	l.ip("-n", m.space, "link", "set", "lo", "up")
	l.machine = m
	l.setup.conf = append(l.setup.conf, "SlurmctldAddr="+m.head)
}

func (l *lab) ip(args ...string) {
	l.Helper()
	if out, err := exec.CommandContext(l.Context(), "ip", args...).CombinedOutput(); err != nil {
		shareddata.Need(l, !strings.Contains(string(out), "Operation not permitted"), "networks can't be made here")
		l.Fatalf("ip %q: %v\n%s", args, err, out)
	}
}

// inside returns what goes before a command that runs on that machine.
func (m *machine) inside() []string { return []string{"nsenter", "--net=" + m.path(), "--"} }

func (m *machine) path() string { return filepath.Join("/run/netns", m.space) }

// moveThere has the slurmd of a node run on the machine.
func (l *lab) moveThere(node string) {
	l.Helper()
	l.stopDaemon("slurmd."+node, syscall.SIGTERM)
	command := append(l.machine.inside(), slurmlab.Preferred("slurmd", "-N", node, "-f", l.conf)...)
	l.slurm(command[0], command[1:]...)
	l.slurm("scontrol", "update", "NodeName="+node, "NodeAddr="+l.machine.addrs[0])
	l.eventually(node+" is where it belongs", func() bool {
		return strings.Contains(l.slurm("sinfo", "-h", "-N", "-p", "main", "-n", node, "-o", "%T"), "idle")
	})
}

// dial connects from an address of the machine, by a port that only root has, or one that anybody has.
func (m *machine) dial(ctx context.Context, from, to string, root bool) (c net.Conn, err error) {
	// Not a thread that ends with a goroutine: what it had started would be told to end.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	back, err := enter(m.path())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, back()) }()
	const lowest = 512
	for port := 1023; ; port-- {
		local := &net.TCPAddr{IP: net.ParseIP(from)}
		if root {
			local.Port = port
		}
		c, err = (&net.Dialer{LocalAddr: local}).DialContext(ctx, "tcp", to)
		isTaken := errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EADDRNOTAVAIL)
		if !root || !isTaken || port == lowest {
			return c, err
		}
	}
}

// enter has this thread be in another network, until what it returns is called.
func enter(path string) (back func() error, err error) {
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	there, err := os.Open(path)
	if err != nil {
		return nil, errors.Join(err, home.Close())
	}
	err = errors.Join(unix.Setns(int(there.Fd()), unix.CLONE_NEWNET), there.Close())
	return func() error {
		return errors.Join(unix.Setns(int(home.Fd()), unix.CLONE_NEWNET), home.Close())
	}, err
}
