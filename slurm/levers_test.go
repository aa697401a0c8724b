package slurm_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/epplan/epplan/slurm"
	"pgregory.net/rapid"
)

func TestNiceIsAnOffsetOnTopOfTheUsersOwn(t *testing.T) {
	f, _, l := levers(t)
	f.job(7, "PENDING", map[string]any{"nice": 50})
	ctx := t.Context()
	first, err := l.SetNice(ctx, 7, 100, nil)
	if err != nil || f.jobs[7]["nice"] != 150 || first.Before != "50" {
		t.Fatal(first, err, f.jobs[7])
	}
	second, err := l.SetNice(ctx, 7, 20, &first)
	if err != nil || f.jobs[7]["nice"] != 70 || second.Before != "50" {
		t.Fatal(second, err, f.jobs[7])
	}
	f.jobs[7]["nice"] = 5 // the user
	if err := l.Undo(ctx, second); !errors.Is(err, slurm.ErrChanged) || f.jobs[7]["nice"] != 5 {
		t.Error(err, f.jobs[7])
	}
	third, err := l.SetNice(ctx, 7, 10, &second)
	if err != nil || f.jobs[7]["nice"] != 15 {
		t.Error(third, err, f.jobs[7])
	}
	if err := l.Undo(ctx, third); err != nil || f.jobs[7]["nice"] != 5 {
		t.Error(err, f.jobs[7])
	}
}

func TestNiceNeverGoesBelowTheUsersOwn(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f, _, l := levers(t)
		own := rapid.IntRange(-100, 1000).Draw(rt, "own")
		f.job(7, "PENDING", map[string]any{"nice": own})
		var prior *slurm.Undo
		for range rapid.IntRange(1, 6).Draw(rt, "steps") {
			u, err := l.SetNice(context.Background(), 7, rapid.IntRange(-5, 500).Draw(rt, "offset"), prior)
			if err == nil {
				prior = &u
			}
			if n, _ := f.jobs[7]["nice"].(int); n < own {
				rt.Fatalf("nice %d below the user's own %d", n, own)
			}
		}
		if prior != nil {
			if err := l.Undo(context.Background(), *prior); err != nil || f.jobs[7]["nice"] != own {
				rt.Fatalf("undo: %v, nice %v, own %d", err, f.jobs[7]["nice"], own)
			}
		}
	})
}

func TestAHeldJobIsNotTouchedSoThatItIsNotReleased(t *testing.T) {
	f, _, l := levers(t)
	f.job(7, "PENDING", map[string]any{"priority": 0})
	f.job(8, "RUNNING", nil)
	if _, err := l.SetNice(t.Context(), 7, 10, nil); !errors.Is(err, slurm.ErrHeld) {
		t.Error(err)
	}
	if _, err := l.SetNice(t.Context(), 8, 10, nil); !errors.Is(err, slurm.ErrNotPending) {
		t.Error(err)
	}
	if _, err := l.SetNice(t.Context(), 9, 10, nil); !errors.Is(err, slurm.ErrNotFound) {
		t.Error(err)
	}
	if n := f.count("scontrol update"); n != 0 {
		t.Errorf("%d updates", n)
	}
}

func TestTheTokenGoesInAndOutAndForeignTextStays(t *testing.T) {
	f, _, l := levers(t)
	f.job(7, "RUNNING", map[string]any{"admin_comment": "site; x=1"})
	u, err := l.SetToken(t.Context(), 7, "ab12")
	if err != nil || f.jobs[7]["admin_comment"] != "site; x=1;epplan:ab12" {
		t.Fatal(err, f.jobs[7])
	}
	f.jobs[7]["admin_comment"] = "other;epplan:ab12;site" // somebody edits around it
	if err := l.Undo(t.Context(), u); err != nil || f.jobs[7]["admin_comment"] != "other;site" {
		t.Error(err, f.jobs[7])
	}
	if err := l.Undo(t.Context(), u); !errors.Is(err, slurm.ErrChanged) {
		t.Error(err)
	}
}

func TestPreferTakesOnlyFeaturesThatSlurmKnows(t *testing.T) {
	f, _, l := levers(t)
	f.job(7, "PENDING", map[string]any{"prefer": "lab"})
	for _, bad := range [][]string{nil, {"nosuch"}, {"h200", "nosuch"}, {"h200&lab"}, {"-x"}, {"a b"}, {""}} {
		if _, err := l.SetPrefer(t.Context(), 7, bad); !errors.Is(err, slurm.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	u, err := l.SetPrefer(t.Context(), 7, []string{"h200"})
	if err != nil || f.jobs[7]["prefer"] != "h200" {
		t.Fatal(err)
	}
	if err := l.Undo(t.Context(), u); err != nil || f.jobs[7]["prefer"] != "lab" {
		t.Error(err, f.jobs[7])
	}
}

func TestWeightsAreAssertedAfterAReconfigureAndUndone(t *testing.T) {
	f, _, l := levers(t)
	ctx := t.Context()
	a, err := l.SetWeight(ctx, "n1", 77)
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.SetWeight(ctx, "n2", 88)
	if err != nil {
		t.Fatal(err)
	}
	f.weights["n1"], f.weights["n2"] = 1, 5 // n1: scontrol reconfigure; n2: an admin
	set, err := l.AssertWeights(ctx, []slurm.Undo{a, b})
	if err != nil || len(set) != 1 || set[0] != "n1" || f.weights["n1"] != 77 || f.weights["n2"] != 5 {
		t.Error(set, err, f.weights)
	}
	if err := l.Undo(ctx, a); err != nil || f.weights["n1"] != 1 {
		t.Error(err, f.weights)
	}
	if err := l.Undo(ctx, b); !errors.Is(err, slurm.ErrChanged) {
		t.Error(err)
	}
}

// A list of a hundred thousand nodes is long to read, and is asked for each minute.
func TestWhatTheSiteKeepsAwakeIsReadOncePerChange(t *testing.T) {
	f, _, l := levers(t)
	f.saving = true
	ask := func(nodes string) slurm.PowerSaving {
		t.Helper()
		f.except = "SuspendExcNodes = " + nodes + "\nSuspendExcParts = debug\n"
		got, err := l.PowerSaving(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first, again := ask("n[1-3]:2"), ask("n[1-3]:2")
	if len(first.Awake) != 1 || len(again.Awake) != 1 || &first.Awake[0] != &again.Awake[0] ||
		&first.AwakeParts[0] != &again.AwakeParts[0] {
		t.Errorf("the same text was read again: %+v, %+v", first, again)
	}
	if odd := ask("n["); odd.UnreadReason == "" || odd.Awake != nil {
		t.Errorf("after a change for the worse: %+v", odd)
	}
	if odd := ask("n["); odd.UnreadReason == "" {
		t.Errorf("what was wrong is forgotten: %+v", odd)
	}
	if other := ask("n[1-4]:2"); other.UnreadReason != "" || len(other.Awake) != 1 ||
		len(other.Awake[0].Nodes) != 4 {
		t.Errorf("after a change: %+v", other)
	}
}

func TestPowerNeedsPowerSaving(t *testing.T) {
	f, _, l := levers(t)
	if _, err := l.PowerDown(t.Context(), "n1"); !errors.Is(err, slurm.ErrNoPowerSaving) {
		t.Error(err)
	}
	f.saving = true
	u, err := l.PowerDown(t.Context(), "n1")
	if err != nil || f.power["n1"] != "+POWERED_DOWN" {
		t.Fatal(err, f.power)
	}
	if err := l.Undo(t.Context(), u); err != nil || f.power["n1"] != "" {
		t.Error(err, f.power)
	}
}

func TestATimeoutThatCannotBeReadIsALongOne(t *testing.T) {
	f, _, l := levers(t)
	f.saving = true
	for text, want := range map[string]time.Duration{
		"60 sec": time.Minute, "90": 90 * time.Second, "INFINITE": slurm.NoTimeout, "5 min": slurm.NoTimeout,
		"-1 sec": slurm.NoTimeout,
	} {
		f.resume = text
		if got, err := l.PowerSaving(t.Context()); err != nil || !got.Enabled || got.Resume != want ||
			got.Suspend != slurm.NoTimeout {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func TestWhatTheSiteKeepsFromSleepingIsKnown(t *testing.T) {
	f, _, l := levers(t)
	f.saving = true
	f.except = "SuspendExcNodes = n[1-3]:2,login,g[08-09]x\nSuspendExcParts = debug,login\n" +
		"SuspendExcStates = CLOUD,DRAIN\n"
	got, err := l.PowerSaving(t.Context())
	want := []slurm.AwakeNodes{
		{Nodes: []string{"n1", "n2", "n3"}, Idle: 2},
		{Nodes: []string{"login"}},
		{Nodes: []string{"g08x", "g09x"}},
	}
	if err != nil || !reflect.DeepEqual(got.Awake, want) || got.UnreadReason != "" ||
		!slices.Equal(got.AwakeParts, []string{"debug", "login"}) ||
		!slices.Equal(got.AwakeFlags, []string{"CLOUD", "DRAIN"}) {
		t.Errorf("%+v, %v", got, err)
	}
	f.except = "SuspendExcNodes = (null)\nSuspendExcParts = (null)\n"
	if got, err = l.PowerSaving(t.Context()); err != nil || got.Awake != nil || got.AwakeParts != nil ||
		got.UnreadReason != "" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, odd := range []string{"n[1-3", "n1:", "n1:0", "n1:-2", "n[1-3]:x", "n 1"} {
		f.except = "SuspendExcNodes = " + odd + "\n"
		if got, err = l.PowerSaving(t.Context()); err != nil || got.UnreadReason == "" {
			t.Errorf("%q: %+v, %v: want that it can't be read", odd, got, err)
		}
	}
}

func TestNoHostileArgumentReachesScontrol(t *testing.T) {
	f, c, l := levers(t)
	f.saving = true
	ctx := t.Context()
	for _, name := range []string{
		"", "-v", "n1 n2", "n[1-2]", "n1,n2", "ALL;x", "n1\nweight=3", "$(x)",
		"../n1", string(make([]byte, 100)),
	} {
		_, e1 := l.SetWeight(ctx, name, 3)
		_, e2 := l.PowerDown(ctx, name)
		_, e3 := l.PowerUp(ctx, name)
		_, e4 := c.Node(ctx, name)
		for _, err := range []error{e1, e2, e3, e4} {
			if !errors.Is(err, slurm.ErrInvalid) {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
	for _, u := range []slurm.Undo{
		{Lever: "reboot", Node: "n1", After: "x"},
		{Lever: slurm.LeverWeight, Node: "n1", Before: "x;y", After: "1"},
		{Lever: slurm.LeverNice, Job: 0, Before: "1", After: "2"},
	} {
		if err := l.Undo(ctx, u); err == nil {
			t.Errorf("%+v was done", u)
		}
	}
	if n := f.count("scontrol update"); n != 0 {
		t.Errorf("%d updates: %v", n, f.calls)
	}
}

func TestLookUpsThatOverlapShareOneCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c, _ := levers(t)
		f.job(7, "RUNNING", nil)
		f.block = make(chan struct{})
		gone, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		errs := make([]error, 50)
		for i := range errs {
			ctx := t.Context()
			if i == 0 {
				ctx = gone
			}
			wg.Go(func() { _, errs[i] = c.Jobs(ctx) })
		}
		synctest.Wait()
		cancel() // one of them gives up; the others still get their answer
		synctest.Wait()
		close(f.block)
		wg.Wait()
		if !errors.Is(errs[0], context.Canceled) {
			t.Error(errs[0])
		}
		for _, err := range errs[1:] {
			if err != nil {
				t.Error(err)
			}
		}
		if n := f.count("squeue"); n != 1 {
			t.Errorf("%d commands", n)
		}
	})
}

func TestAHungCommandEndsWithTheLookUpsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.block = make(chan struct{})
		c := slurm.NewClient(f, 3*time.Second)
		start := time.Now()
		if _, err := c.Jobs(t.Context()); !errors.Is(err, context.DeadlineExceeded) ||
			time.Since(start) != 3*time.Second {
			t.Error(err, time.Since(start))
		}
	})
}

func TestCommonFailuresHaveTheirNames(t *testing.T) {
	f, c, _ := levers(t)
	for words, want := range map[string]error{
		"slurm_load_jobs error: Invalid job id specified":                             slurm.ErrNotFound,
		"slurm_load_jobs error: Unable to contact slurm controller (connect failure)": slurm.ErrUnreachable,
		"slurm_load_jobs error: Socket timed out on send/recv operation":              slurm.ErrUnreachable,
		"Slurm accounting storage is disabled":                                        slurm.ErrNoAccounting,
	} {
		f.fail = &slurm.CommandError{Name: "x", Status: 1, Stderr: words}
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
