package hooks_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

func hookEnv(tb testing.TB, name string, kind hooks.Hook) hooks.Env {
	tb.Helper()
	text, err := os.ReadFile(shareddata.Path(tb, "../slurm-lab/samples/env-"+name+"-"+string(kind)+".txt"))
	if err != nil {
		tb.Fatal(err)
	}
	e, err := hooks.ParseEnv(kind, strings.Split(string(text), "\n"))
	if err != nil {
		tb.Fatal(name, err)
	}
	if len(e.Warnings) != 0 {
		tb.Errorf("%s: %v", name, e.Warnings)
	}
	return e
}

// hookEnvOf finds the call on a node: those of several nodes are numbered in
// their order, which differs between Prolog and Epilog.
func hookEnvOf(tb testing.TB, name, node string, kind hooks.Hook) hooks.Env {
	tb.Helper()
	e := hookEnv(tb, name, kind)
	if e.Node != node {
		return hookEnv(tb, map[string]string{"twonodes-1": "twonodes-2", "twonodes-2": "twonodes-1"}[name],
			kind)
	}
	return e
}

func TestRecordedHookEnvironments(t *testing.T) {
	for name, want := range map[string]struct {
		job  slurm.JobID
		node string
		gpus []int
		het  slurm.JobID
	}{
		"shard-1": {13, "n1", []int{2}, 0}, "twonodes-1": {3, "n1", []int{4, 5}, 0},
		"twonodes-2": {3, "n2", []int{0, 1}, 0},
		"het1-1":     {18, "n2", []int{1, 2}, 17}, "newline-1": {21, "n1", nil, 0},
	} {
		for _, kind := range []hooks.Hook{hooks.Prolog, hooks.Epilog} {
			e := hookEnvOf(t, name, want.node, kind)
			if e.Job != want.job || e.Node != want.node || e.HetJob != want.het || e.UID != 65534 ||
				e.User != "nobody" || e.Partition != "main" || e.Cluster != "lab" {
				t.Errorf("%s %s: %+v", name, kind, e)
			}
			if e.GPUsKnown != (want.gpus != nil) || want.gpus != nil && !slices.Equal(e.GPUs, want.gpus) {
				t.Errorf("%s %s: GPUs %v known %v", name, kind, e.GPUs, e.GPUsKnown)
			}
			ev := e.Event(time.UnixMilli(1795251323000))
			if err := ev.Validate(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if e := hookEnv(t, "failed-1", hooks.Epilog); e.Exit.Code != 7 && e.Exit.Code != 3 {
		t.Errorf("exit %+v", e.Exit)
	}
}

func TestAHookWithoutJobOrNodeIsAnErrorAndBadFieldsAreWarnings(t *testing.T) {
	good := []string{"SLURM_JOB_ID=7", "SLURMD_NODENAME=n1", "SLURM_SCRIPT_CONTEXT=prolog_slurmd"}
	for _, bad := range [][]string{
		nil,
		{"SLURM_JOB_ID=7"},
		{"SLURM_JOB_ID=7;x", "SLURMD_NODENAME=n1"},
		{"SLURM_JOB_ID=7", "SLURMD_NODENAME=../n1"},
		{"SLURM_JOB_ID=-7", "SLURMD_NODENAME=n1"},
	} {
		if e, err := hooks.ParseEnv(hooks.Prolog, bad); err == nil {
			t.Errorf("%v: %+v", bad, e)
		}
	}
	if _, err := hooks.ParseEnv(hooks.Epilog, good); err == nil {
		t.Error("a prolog's environment was read as an epilog's")
	}
	e, err := hooks.ParseEnv(hooks.Prolog,
		append(slices.Clone(good), "SLURM_JOB_GPUS=0,x", "SLURM_JOB_UID=root", "SLURM_NODELIST=n[",
			"SLURM_JOB_RESTART_COUNT=99999999999", "SLURM_JOB_COMMENT="+strings.Repeat("y", 1<<20)))
	if err != nil || len(e.Warnings) != 4 || e.GPUsKnown || len(e.Comment) != slurm.MaxText {
		t.Errorf("%v %v", e.Warnings, err)
	}
	e, err = hooks.ParseEnv(hooks.Prolog, append(slices.Clone(good), "SLURM_JOB_GPUS=3,1-2",
		"CUDA_VISIBLE_DEVICES=MIG-1234-ab,$(reboot)", "SLURM_JOB_ID=999"))
	if err != nil || !slices.Equal(e.GPUs, []int{1, 2, 3}) ||
		!slices.Equal(e.MIG, []string{"MIG-1234-ab"}) || e.Job != 7 {
		t.Errorf("%+v %v", e, err)
	}
	e, err = hooks.ParseEnv(hooks.Prolog, append(slices.Clone(good), "SLURM_JOB_GPUS=1-2",
		"CUDA_VISIBLE_DEVICES=GPU-1234-ab,GPU-5678-cd,GPU-$(reboot)", "SLURM_CONF=/etc/slurm/slurm.conf"))
	if err != nil || len(e.MIG) > 0 || !slices.Equal(e.UUIDs, []string{"GPU-1234-ab", "GPU-5678-cd"}) ||
		e.Conf != "/etc/slurm/slurm.conf" {
		t.Errorf("%+v %v", e, err)
	}
	if w := e.Event(time.Time{}); len(w.UUIDs) != 2 || w.UUIDs[1] != "GPU-5678-cd" ||
		w.Conf != "/etc/slurm/slurm.conf" || w.Validate() != nil {
		t.Errorf("%+v", w)
	}
	e, err = hooks.ParseEnv(hooks.Prolog,
		append(slices.Clone(good), "SLURM_JOB_GPUS=1", "SLURM_CONF=slurm.conf"))
	if err != nil || e.Conf != "" {
		t.Errorf("a relative path: %+v %v", e, err)
	}
}

func TestASubmissionKeepsAnyBytesOfItsTexts(t *testing.T) {
	in := hooks.Submission{
		Version: hooks.ProtocolVersion, Kind: "batch", UID: 1000, Name: "a\n\"\xff\x00",
		Comment: "epplan:off", TRESPerNode: "gres:gpu:2", TimeLimit: 90,
	}
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := hooks.DecodeSubmission(strings.NewReader(string(data)))
	if err != nil || out != in || !out.WantsGPU() || out.Limit() != live.LimitOf(90*time.Minute) {
		t.Errorf("%+v, %v", out, err)
	}
	for name, bad := range map[string]string{
		"not hex": `{"v":1,"kind":"batch","name_hex":"zz"}`, "version": `{"v":2,"kind":"batch"}`,
		"kind": `{"v":1,"kind":"x"}`, "two values": `{"v":1,"kind":"batch"}{}`,
		"torn":     `{"v":1,`,
		"too long": `{"v":1,"kind":"batch","name_hex":"` + strings.Repeat("61", slurm.MaxText+1) + `"}`,
		"flood":    strings.Repeat(" ", hooks.MaxMessage+1), "uid": `{"v":1,"kind":"batch","uid":-1}`,
	} {
		if s, err := hooks.DecodeSubmission(strings.NewReader(bad)); err == nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if s := (hooks.Submission{TimeLimit: slurm.NoVal}); s.Limit().IsSet() {
		t.Error("no value is a limit")
	}
}

func TestAHookEventNamesOnlyWhatCanExist(t *testing.T) {
	good := hooks.Event{
		Version: 1, Kind: hooks.Prolog, Job: 7, Node: "n1", GPUs: []int{0}, GPUsKnown: true,
	}
	data, err := json.Marshal(good)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hooks.DecodeEvent(strings.NewReader(string(data))); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*hooks.Event){
		"job": func(e *hooks.Event) { e.Job = 0 }, "node": func(e *hooks.Event) { e.Node = "a b" },
		"gpu":     func(e *hooks.Event) { e.GPUs = []int{-1} },
		"kind":    func(e *hooks.Event) { e.Kind = "submit" },
		"version": func(e *hooks.Event) { e.Version = 0 },
	} {
		e := good
		change(&e)
		if e.Validate() == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// As slurmd tells them from 23.02 on: in a Prolog the end is when the limit is over.
func TestAnEpilogSaysWhenItsJobEnded(t *testing.T) {
	told := []string{
		"SLURM_JOB_ID=7", "SLURMD_NODENAME=n1", "SLURM_JOB_START_TIME=1795404582",
		"SLURM_JOB_END_TIME=1795404584",
	}
	for kind, want := range map[hooks.Hook]int64{hooks.Prolog: 0, hooks.Epilog: 1795404584} {
		e, err := hooks.ParseEnv(kind, told)
		if err != nil || len(e.Warnings) > 0 {
			t.Fatal(err, e.Warnings)
		}
		if got := e.Event(time.Time{}).End; got != want {
			t.Errorf("%s: ended at %d, want %d", kind, got, want)
		}
	}
	e := hookEnv(t, "timelimit-1", hooks.Epilog) // of 22.05
	if got := e.Event(time.Time{}).End; got != 0 {
		t.Errorf("ended at %d, though nobody said so", got)
	}
}
