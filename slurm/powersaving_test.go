package slurm_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/epplan/epplan/slurm"
)

// sleepingSite returns a client of a Slurm with power saving, and its further settings.
func sleepingSite() (settings *string, c *slurm.Client) {
	settings = new(string)
	return settings, slurm.NewClient(slurm.RunnerFunc(func(context.Context, string, ...string) ([]byte, error) {
		return []byte("SuspendProgram = /s\nResumeProgram = /r\n" + *settings), nil
	}), 0)
}

// A list of a hundred thousand nodes is long to read, and is asked for each minute.
func TestWhatTheSiteKeepsAwakeIsReadOncePerChange(t *testing.T) {
	settings, c := sleepingSite()
	ask := func(nodes string) slurm.PowerSaving {
		t.Helper()
		*settings = "SuspendExcNodes = " + nodes + "\nSuspendExcParts = debug\n"
		got, err := c.PowerSaving(t.Context())
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

func TestATimeoutThatCannotBeReadIsALongOne(t *testing.T) {
	settings, c := sleepingSite()
	for text, want := range map[string]time.Duration{
		"60 sec": time.Minute, "90": 90 * time.Second, "INFINITE": slurm.NoTimeout, "5 min": slurm.NoTimeout,
		"-1 sec": slurm.NoTimeout,
	} {
		*settings = "ResumeTimeout = " + text + "\n"
		if got, err := c.PowerSaving(t.Context()); err != nil || !got.Enabled || got.Resume != want ||
			got.Suspend != slurm.NoTimeout {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func TestWhatTheSiteKeepsFromSleepingIsKnown(t *testing.T) {
	settings, c := sleepingSite()
	*settings = "SuspendExcNodes = n[1-3]:2,login,g[08-09]x\nSuspendExcParts = debug,login\n" +
		"SuspendExcStates = CLOUD,DRAIN\n"
	got, err := c.PowerSaving(t.Context())
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
	*settings = "SuspendExcNodes = (null)\nSuspendExcParts = (null)\n"
	if got, err = c.PowerSaving(t.Context()); err != nil || got.Awake != nil || got.AwakeParts != nil ||
		got.UnreadReason != "" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, odd := range []string{"n[1-3", "n1:", "n1:0", "n1:-2", "n[1-3]:x", "n 1"} {
		*settings = "SuspendExcNodes = " + odd + "\n"
		if got, err = c.PowerSaving(t.Context()); err != nil || got.UnreadReason == "" {
			t.Errorf("%q: %+v, %v: want that it can't be read", odd, got, err)
		}
	}
}

// Of 26.05, as scontrol show node prints it there; before, it says nothing of it.
func TestANodesOwnSuspendTimeIsRead(t *testing.T) {
	const of2605 = "NodeName=n1 Arch=x86_64 CoresPerSocket=1 \n   CPUAlloc=0 CPUEfctv=16 CPUTot=16 CPULoad=5.46\n" +
		"   State=IDLE ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A\n   Partitions=main,low \n" +
		"   LastBusyTime=2026-11-26T16:44:48 ResumeAfterTime=None%s\n   CfgTRES=cpu=16,mem=62.50G,billing=16\n"
	for said, want := range map[string]bool{" SuspendTime=INFINITE": true, " SuspendTime=77": false, "": false} {
		nodes, _, err := slurm.ParseNodeText("scontrol", fmt.Appendf(nil, of2605, said), time.UTC)
		if err != nil || len(nodes) != 1 || nodes[0].NeverSuspends != want {
			t.Errorf("%q: %+v, %v", said, nodes, err)
		}
	}
	settings, c := sleepingSite()
	for said, want := range map[string]bool{"3600 sec": true, "INFINITE": false, "(null)": false} {
		*settings = "SuspendTime = " + said + "\n"
		if got, err := c.PowerSaving(t.Context()); err != nil || got.Timed != want {
			t.Errorf("%q: %+v, %v", said, got, err)
		}
	}
}
