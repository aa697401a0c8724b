package slurm_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/epplan/epplan/slurm"
)

// hungUntil returns an scontrol that says that there are no nodes once block is closed, and
// counts how often it is asked.
func hungUntil(block chan struct{}, asked *atomic.Int32) slurm.Runner {
	return slurm.RunnerFunc(func(ctx context.Context, _ string, _ ...string) ([]byte, error) {
		asked.Add(1)
		select {
		case <-block:
			return []byte("No nodes in the system\n"), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
}

func TestLookUpsThatOverlapShareOneCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var commands atomic.Int32
		block := make(chan struct{})
		c := slurm.NewClient(hungUntil(block, &commands), 0)
		gone, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		errs := make([]error, 50)
		for i := range errs {
			ctx := t.Context()
			if i == 0 {
				ctx = gone
			}
			wg.Go(func() { _, _, errs[i] = c.Nodes(ctx) })
		}
		synctest.Wait()
		cancel() // one of them gives up; the others still get their answer
		synctest.Wait()
		close(block)
		wg.Wait()
		if !errors.Is(errs[0], context.Canceled) {
			t.Error(errs[0])
		}
		for _, err := range errs[1:] {
			if err != nil {
				t.Error(err)
			}
		}
		if n := commands.Load(); n != 1 {
			t.Errorf("%d commands", n)
		}
	})
}

func TestAHungCommandEndsWithTheLookUpsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := slurm.NewClient(hungUntil(make(chan struct{}), new(atomic.Int32)), 3*time.Second)
		start := time.Now()
		if _, _, err := c.Nodes(t.Context()); !errors.Is(err, context.DeadlineExceeded) ||
			time.Since(start) != 3*time.Second {
			t.Error(err, time.Since(start))
		}
	})
}

func TestCommonFailuresHaveTheirNames(t *testing.T) {
	for words, want := range map[string]error{
		"slurm_load_jobs error: Invalid job id specified":                             slurm.ErrNotFound,
		"slurm_load_jobs error: Unable to contact slurm controller (connect failure)": slurm.ErrUnreachable,
		"slurm_load_jobs error: Socket timed out on send/recv operation":              slurm.ErrUnreachable,
		"Slurm accounting storage is disabled":                                        slurm.ErrNoAccounting,
	} {
		c := slurm.NewClient(slurm.RunnerFunc(func(context.Context, string, ...string) ([]byte, error) {
			return nil, &slurm.CommandError{Name: "x", Status: 1, Stderr: words}
		}), 0)
		if _, err := c.Accounting(t.Context(), time.Unix(1795251323, 0)); !errors.Is(err, want) {
			t.Errorf("%s: %v", words, err)
		}
	}
}

func TestTheRealRunnerIsBoundedAndHasNoShell(t *testing.T) {
	dir := t.TempDir()
	script := func(body string) {
		t.Helper()
		writeFile(t, dir+"/squeue", "#!/bin/sh\n"+body+"\n")
	}
	r := slurm.ExecRunner{Dir: dir, Conf: "/etc/x.conf", Timeout: 20 * time.Second, MaxOutput: 1 << 16}
	script(
		`printf '%s|' "$@"; echo "$LC_ALL $SLURM_CONF $PATH ${SLURM_TIME_FORMAT-none}/${HOOK_TEST-none} $SLURM_BITSTR_LEN"`,
	)
	t.Setenv("SLURM_TIME_FORMAT", "%s")
	t.Setenv("HOOK_TEST", "leak")
	out, err := r.Run(t.Context(), "squeue", "$(reboot)", "a b;c", "`x`")
	if err != nil || string(out) != "$(reboot)|a b;c|`x`|C /etc/x.conf /usr/bin:/bin none/none 4096\n" {
		t.Errorf("%q %v", out, err)
	}
	script("while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done")
	if out, err := r.Run(t.Context(), "squeue"); !errors.Is(err, slurm.ErrOutputTooLong) || len(out) > 1<<16 {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	script("echo 'squeue: error: no' >&2; exit 3")
	var failed *slurm.CommandError
	if _, err := r.Run(t.Context(), "squeue"); !errors.As(err, &failed) || failed.Status != 3 ||
		failed.Stderr != "squeue: error: no" {
		t.Error(err)
	}
	script("exec sleep 60")
	r.Timeout = 50 * time.Millisecond
	if _, err := r.Run(t.Context(), "squeue"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	for _, bad := range []string{"sh", "../sh", "", "scontrol;x"} {
		if _, err := r.Run(t.Context(), bad); !errors.Is(err, slurm.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := r.Run(t.Context(), "sinfo"); err == nil {
		t.Error("a missing binary ran")
	}
	if _, err := r.Run(t.Context(), "squeue", "a\x00b"); !errors.Is(err, slurm.ErrInvalid) {
		t.Error(err)
	}
}
