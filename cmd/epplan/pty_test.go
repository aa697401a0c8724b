package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// onTerminal is a program that runs with a terminal as its standard error.
type onTerminal struct {
	*exec.Cmd
	stdout bytes.Buffer

	mu     sync.Mutex
	stderr strings.Builder
	more   chan struct{} // there may be more on stderr, or it has ended
}

// startOnTerminal starts epplan. Its standard output is kept unless it is to go elsewhere.
func startOnTerminal(t *testing.T, stdout io.Writer, args ...string) *onTerminal {
	t.Helper()
	master, slave := terminalPair(t)
	p := &onTerminal{Cmd: exec.CommandContext(t.Context(), "epplan", args...), more: make(chan struct{}, 1)}
	p.Stdout, p.Stderr, p.Env = &p.stdout, slave, append(os.Environ(), "TERM=xterm")
	if stdout != nil {
		p.Stdout = stdout
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() })
	if err := slave.Close(); err != nil {
		t.Fatal(err)
	}
	go p.read(master)
	return p
}

// terminalPair returns a terminal: what is written to the slave is read from the master.
func terminalPair(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Close() })
	connection, err := master.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	number, failed := 0, error(nil)
	if err := connection.Control(func(fd uintptr) {
		failed = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
		if failed == nil {
			number, failed = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	}); err != nil || failed != nil {
		t.Fatal(errors.Join(err, failed))
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return master, slave
}

// read takes what the program writes to the terminal, until it ends.
func (p *onTerminal) read(master *os.File) {
	buffer := make([]byte, 1<<12)
	for {
		n, err := master.Read(buffer)
		p.mu.Lock()
		p.stderr.Write(buffer[:n])
		p.mu.Unlock()
		if err != nil {
			close(p.more)
			return
		}
		select {
		case p.more <- struct{}{}:
		default:
		}
	}
}

// shown returns what was on the terminal until now.
func (p *onTerminal) shown() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

// waitFor waits until one line on the terminal has all the words.
func (p *onTerminal) waitFor(t *testing.T, words ...string) {
	t.Helper()
	for {
		for line := range strings.FieldsFuncSeq(p.shown(),
			func(r rune) bool { return r == '\r' || r == '\n' }) {
			missing := 0
			for _, word := range words {
				if !strings.Contains(line, word) {
					missing++
				}
			}
			if missing == 0 {
				return
			}
		}
		if _, ok := <-p.more; !ok {
			said := p.shown()
			t.Fatalf("…%q never has %q", said[max(0, len(said)-300):], words)
		}
	}
}

// signalled sends a signal.
func (p *onTerminal) signalled(t *testing.T, signal os.Signal) {
	t.Helper()
	if err := p.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// ended waits until the program has ended, and returns what is known of that.
func (p *onTerminal) ended(t *testing.T) *os.ProcessState {
	t.Helper()
	var exit *exec.ExitError
	if err := p.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	for range p.more { // the rest of what it wrote
	}
	return p.ProcessState
}
