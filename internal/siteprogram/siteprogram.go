// Package siteprogram runs a site's own programs, such as those that switch nodes, for one node each.
package siteprogram

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/epplan/epplan/slurm"
)

const (
	parallel       = 16      // programs that run side by side
	maxErrorOutput = 4 << 10 // bytes of what a program prints
)

// RunOnNodes runs a program for each node, with its name as the only argument, up to 16 side by side, and
// returns the nodes that failed, and why. Each has at most a time.
func RunOnNodes(ctx context.Context, program string, nodes []string, bound time.Duration) map[string]string {
	var mu sync.Mutex
	failed := make(map[string]string)
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, node := range nodes {
		group.Go(func() error {
			if err := runOnNode(ctx, program, node, bound); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed[node] = err.Error()
			}
			return nil
		})
	}
	_ = group.Wait() // no function has an error
	return failed
}

// runOnNode runs a program for a node. It is ended with all that it started when
// its time is over.
func runOnNode(ctx context.Context, program, node string, bound time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, node) //nolint:gosec // the administrator's own program, a node's name
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	for _, v := range os.Environ() {
		if strings.HasPrefix(v, "SLURM") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	said := &tailBuffer{}
	cmd.Stdout, cmd.Stderr = said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return nil // what it left in the background is its own affair
	case ctx.Err() != nil:
		return fmt.Errorf("%s took more than %v", filepath.Base(program), bound)
	}
	if text := said.String(); text != "" {
		return fmt.Errorf("%w: %s", err, text)
	}
	return err
}

type tailBuffer struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (t *tailBuffer) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[max(0, len(p)-maxErrorOutput):]...)
	t.text = t.text[max(0, len(t.text)-maxErrorOutput):]
	return len(p), nil
}

// String returns the last line.
func (t *tailBuffer) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := bytes.TrimSpace(t.text)
	return slurm.Printable(string(text[bytes.LastIndexByte(text, '\n')+1:]), 200)
}
