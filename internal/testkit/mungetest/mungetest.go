// Package mungetest runs real munge daemons for tests, each with a key and a
// socket of its own, and makes credentials that no munged would make.
package mungetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// Bounds of what a munged may take.
const (
	startTime = 10 * time.Second
	stopTime  = 5 * time.Second
	lookEvery = 5 * time.Millisecond
)

// Munged is a munge daemon.
type Munged struct {
	Socket string
	Key    []byte
	dir    string
	cmd    *exec.Cmd
	done   chan struct{}
	said   *bytes.Buffer
}

// NewKey returns a random key.
func NewKey() []byte {
	const size = 128
	key := make([]byte, size)
	_, _ = rand.Read(key) // never fails
	return key
}

// Start runs a munged with a key until the test ends; with a key of its own
// where none is given. It needs the package munge.
func Start(tb testing.TB, key []byte) *Munged {
	tb.Helper()
	_, err := exec.LookPath("munged")
	shareddata.Need(tb, err == nil, "munged isn't installed: run scripts/test-packages.sh")
	if key == nil {
		key = NewKey()
	}
	// t.TempDir's folders are closed to other users, and their paths may be
	// too long for a socket.
	dir, err := os.MkdirTemp("", "munge") //nolint:usetesting // see above
	if err != nil {
		tb.Fatal(err)
	}
	m := &Munged{Socket: filepath.Join(dir, "socket"), Key: key, dir: dir}
	tb.Cleanup(func() {
		m.Stop(tb)
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "key"), key, 0o600); err != nil {
		tb.Fatal(err)
	}
	m.Again(tb)
	return m
}

// Again starts a munged that was stopped. It has forgotten what was replayed.
func (m *Munged) Again(tb testing.TB) {
	tb.Helper()
	m.said, m.done = new(bytes.Buffer), make(chan struct{})
	file := func(name string) string { return filepath.Join(m.dir, name) }
	m.cmd = exec.CommandContext(context.Background(), "munged", "--foreground", "--force",
		"--key-file", file("key"), "--socket", m.Socket, "--pid-file", file("pid"),
		"--log-file", file("log"), "--seed-file", file("seed"))
	m.cmd.Stdout, m.cmd.Stderr = m.said, m.said
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} // of a test that is killed
	if err := m.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	go func(cmd *exec.Cmd, done chan struct{}) {
		_ = cmd.Wait() // it ends when it is told to
		close(done)
	}(m.cmd, m.done)
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	for {
		var d net.Dialer
		if c, err := d.DialContext(ctx, "unix", m.Socket); err == nil {
			_ = c.Close()
			return
		}
		select {
		case <-time.After(lookEvery):
		case <-m.done:
			tb.Fatalf("munged ended: %s", m.said)
		case <-ctx.Done():
			tb.Fatal("munged doesn't listen")
		}
	}
}

// Stop ends the munged and returns when it has gone. It is told again and again: munged looks
// whether it was told and then waits for a connection, and a signal in between is lost on it.
func (m *Munged) Stop(tb testing.TB) {
	tb.Helper()
	if m.cmd == nil {
		return
	}
	again := time.NewTicker(lookEvery)
	defer again.Stop()
	late := time.After(stopTime)
	for gone := false; !gone; {
		_ = m.cmd.Process.Signal(syscall.SIGTERM) // it may have gone
		select {
		case <-m.done:
			gone = true
		case <-again.C:
		case <-late:
			_ = m.cmd.Process.Kill()
			<-m.done
			tb.Error("munged had to be killed")
			gone = true
		}
	}
	m.cmd = nil
}
