package slurm_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

func hookEnv(tb testing.TB, name string, kind slurm.Hook) slurm.HookEnv {
	tb.Helper()
	lines := strings.Split(string(sample(tb, "env-"+name+"-"+string(kind)+".txt")), "\n")
	e, err := slurm.ParseHookEnv(kind, lines)
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
func hookEnvOf(tb testing.TB, name, node string, kind slurm.Hook) slurm.HookEnv {
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
		for _, kind := range []slurm.Hook{slurm.Prolog, slurm.Epilog} {
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
	if e := hookEnv(t, "failed-1", slurm.Epilog); e.Exit.Code != 7 && e.Exit.Code != 3 {
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
		if e, err := slurm.ParseHookEnv(slurm.Prolog, bad); err == nil {
			t.Errorf("%v: %+v", bad, e)
		}
	}
	if _, err := slurm.ParseHookEnv(slurm.Epilog, good); err == nil {
		t.Error("a prolog's environment was read as an epilog's")
	}
	e, err := slurm.ParseHookEnv(slurm.Prolog,
		append(slices.Clone(good), "SLURM_JOB_GPUS=0,x", "SLURM_JOB_UID=root", "SLURM_NODELIST=n[",
			"SLURM_JOB_RESTART_COUNT=99999999999", "SLURM_JOB_COMMENT="+strings.Repeat("y", 1<<20)))
	if err != nil || len(e.Warnings) != 4 || e.GPUsKnown || len(e.Comment) != slurm.MaxText {
		t.Errorf("%v %v", e.Warnings, err)
	}
	e, err = slurm.ParseHookEnv(slurm.Prolog, append(slices.Clone(good), "SLURM_JOB_GPUS=3,1-2",
		"CUDA_VISIBLE_DEVICES=MIG-1234-ab,$(reboot)", "SLURM_JOB_ID=999"))
	if err != nil || !slices.Equal(e.GPUs, []int{1, 2, 3}) ||
		!slices.Equal(e.MIG, []string{"MIG-1234-ab"}) || e.Job != 7 {
		t.Errorf("%+v %v", e, err)
	}
	e, err = slurm.ParseHookEnv(slurm.Prolog, append(slices.Clone(good), "SLURM_JOB_GPUS=1-2",
		"CUDA_VISIBLE_DEVICES=GPU-1234-ab,GPU-5678-cd,GPU-$(reboot)", "SLURM_CONF=/etc/slurm/slurm.conf"))
	if err != nil || len(e.MIG) > 0 || !slices.Equal(e.UUIDs, []string{"GPU-1234-ab", "GPU-5678-cd"}) ||
		e.Conf != "/etc/slurm/slurm.conf" {
		t.Errorf("%+v %v", e, err)
	}
	if w := e.Event(time.Time{}); len(w.UUIDs) != 2 || w.UUIDs[1] != "GPU-5678-cd" ||
		w.Conf != "/etc/slurm/slurm.conf" || w.Validate() != nil {
		t.Errorf("%+v", w)
	}
	e, err = slurm.ParseHookEnv(slurm.Prolog,
		append(slices.Clone(good), "SLURM_JOB_GPUS=1", "SLURM_CONF=slurm.conf"))
	if err != nil || e.Conf != "" {
		t.Errorf("a relative path: %+v %v", e, err)
	}
}

func TestASubmissionKeepsAnyBytesOfItsTexts(t *testing.T) {
	in := slurm.Submission{
		Version: slurm.ProtocolVersion, Kind: "batch", UID: 1000, Name: "a\n\"\xff\x00",
		Comment: "epplan:off", TRESPerNode: "gres:gpu:2", TimeLimit: 90,
	}
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := slurm.DecodeSubmission(strings.NewReader(string(data)))
	if err != nil || out != in || !out.WantsGPU() || out.Limit() != live.LimitOf(90*time.Minute) {
		t.Errorf("%+v, %v", out, err)
	}
	for name, bad := range map[string]string{
		"not hex": `{"v":1,"kind":"batch","name_hex":"zz"}`, "version": `{"v":2,"kind":"batch"}`,
		"kind": `{"v":1,"kind":"x"}`, "two values": `{"v":1,"kind":"batch"}{}`,
		"torn":     `{"v":1,`,
		"too long": `{"v":1,"kind":"batch","name_hex":"` + strings.Repeat("61", slurm.MaxText+1) + `"}`,
		"flood":    strings.Repeat(" ", slurm.MaxMessage+1), "uid": `{"v":1,"kind":"batch","uid":-1}`,
	} {
		if s, err := slurm.DecodeSubmission(strings.NewReader(bad)); err == nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if s := (slurm.Submission{TimeLimit: slurm.NoVal}); s.Limit().IsSet() {
		t.Error("no value is a limit")
	}
}

func TestAHookEventNamesOnlyWhatCanExist(t *testing.T) {
	good := slurm.HookEvent{
		Version: 1, Kind: slurm.Prolog, Job: 7, Node: "n1", GPUs: []int{0}, GPUsKnown: true,
	}
	data, err := json.Marshal(good)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := slurm.DecodeHookEvent(strings.NewReader(string(data))); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*slurm.HookEvent){
		"job": func(e *slurm.HookEvent) { e.Job = 0 }, "node": func(e *slurm.HookEvent) { e.Node = "a b" },
		"gpu":     func(e *slurm.HookEvent) { e.GPUs = []int{-1} },
		"kind":    func(e *slurm.HookEvent) { e.Kind = "submit" },
		"version": func(e *slurm.HookEvent) { e.Version = 0 },
	} {
		e := good
		change(&e)
		if e.Validate() == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestWishesInAComment(t *testing.T) {
	zone := time.FixedZone("here", 3600)
	now := time.Date(2026, 11, 21, 17, 0, 0, 0, zone)
	for comment, want := range map[string]slurm.Wishes{
		"":                       {},
		"my own text; no wish":   {},
		"epplan:off":             {Off: true},
		"text;epplan:off;more":   {Off: true},
		"EPPLAN:OFF":             {Off: true},
		"Epplan:Fixed=1200":      {CoreMHz: 1200},
		"epplan:fixed=1200,5001": {CoreMHz: 1200, MemoryMHz: 5001},
		"a epplan:fixed=1200 b":  {CoreMHz: 1200},
		"epplan:deadline=+2h":    {Deadline: now.Add(2 * time.Hour)},
		"epplan:deadline=+3d":    {Deadline: now.Add(72 * time.Hour)},
		"epplan:deadline=18:00":  {Deadline: time.Date(2026, 11, 21, 18, 0, 0, 0, zone)},
		"epplan:deadline=16:00":  {Deadline: time.Date(2026, 11, 22, 16, 0, 0, 0, zone)},
		"epplan:deadline=2026-11-22T10:00:00Z;epplan:fixed=900,5001": {
			Deadline: time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC), CoreMHz: 900, MemoryMHz: 5001,
		},
		"epplan:slowdown=1.05":                    {Slowdown: 1.05},
		"epplan:slowdown=1.5 epplan:deadline=+2h": {Slowdown: 1.5, Deadline: now.Add(2 * time.Hour)},
		"epplan:off;epplan:slowdown=2":            {Off: true, Warnings: []string{"the other doesn't count"}},
		"epplan:off epplan:fixed=1,1":             {Off: true, Warnings: []string{"the other doesn't count"}},
		"prefix-epplan:off":                       {},
	} {
		got := slurm.ParseWishes(comment, now)
		if got.Off != want.Off || got.CoreMHz != want.CoreMHz || got.MemoryMHz != want.MemoryMHz ||
			got.Slowdown != want.Slowdown ||
			!got.Deadline.Equal(want.Deadline) || len(got.Warnings) != len(want.Warnings) {
			t.Errorf("%q: %+v", comment, got)
		}
	}
	for _, comment := range []string{
		"epplan:slowdown=0.9", "epplan:slowdown=", "epplan:slowdown=nan", "epplan:slowdown=11",
		"epplan:slowdown=5%",
		"epplan:fixed=0,0", "epplan:fixed=1200,", "epplan:fixed=-1,5", "epplan:fixed=99999999999999999999",
		"epplan:fixed=1200,5001,7", "epplan:fixed", "epplan:deadline=", "epplan:deadline=-2h",
		"epplan:deadline=+0s", "epplan:deadline=25:00", "epplan:deadline=+9999999h", "epplan:deadline=++2h",
		"epplan:deadline=2020-01-01T00:00:00Z", "epplan:$(reboot)", "epplan:\x00\xff",
		"epplan:deadline=+NaNh",
	} {
		got := slurm.ParseWishes(comment, now)
		if got.Off || got.HasFixedClocks() || !got.Deadline.IsZero() || len(got.Warnings) != 1 {
			t.Errorf("%q: %+v", comment, got)
		}
	}
	if got := slurm.ParseWishes("epplan:fixed=1200,5001 epplan:fixed=300,300", now); got.CoreMHz != 1200 ||
		len(got.Warnings) != 1 {
		t.Errorf("%+v", got)
	}
	if got := slurm.ParseWishes(strings.Repeat("epplan:x ", 100_000), now); len(got.Warnings) > 20 {
		t.Error("warnings are not bounded")
	}
}

// As slurmd tells them from 23.02 on: in a Prolog the end is when the limit is over.
func TestAnEpilogSaysWhenItsJobEnded(t *testing.T) {
	told := []string{
		"SLURM_JOB_ID=7", "SLURMD_NODENAME=n1", "SLURM_JOB_START_TIME=1795404582",
		"SLURM_JOB_END_TIME=1795404584",
	}
	for kind, want := range map[slurm.Hook]int64{slurm.Prolog: 0, slurm.Epilog: 1795404584} {
		e, err := slurm.ParseHookEnv(kind, told)
		if err != nil || len(e.Warnings) > 0 {
			t.Fatal(err, e.Warnings)
		}
		if got := e.Event(time.Time{}).End; got != want {
			t.Errorf("%s: ended at %d, want %d", kind, got, want)
		}
	}
	e := hookEnv(t, "timelimit-1", slurm.Epilog) // of 22.05
	if got := e.Event(time.Time{}).End; got != 0 {
		t.Errorf("ended at %d, though nobody said so", got)
	}
}

func TestOptingOutWorksHoweverItIsWritten(t *testing.T) {
	now := time.Date(2026, 11, 21, 17, 0, 0, 0, time.UTC)
	for _, comment := range []string{
		"epplan:off", "EPPLAN:OFF", "epplan: off", "Epplan : Off", "epplan=off", "epplan = off",
		"epplan:OFF;", "epplan:off.",
		"epplan:off,deadline=+1h", "epplan:off, deadline=+1h", "epplan:deadline=+1h,off",
		"epplan:deadline=+1h; off",
		"epplan:deadline=+1h off", "epplan:fixed=1200,5001,off", "epplan:fixed = 1200 , off", "epplan:nocode,off",
		"my note, epplan:off", "(epplan:off)", "\"epplan:off\"", "see a ticket;epplan:off;more",
		"epplan::off", "epplan:=off",
		"epplan off", "epplan-off", "epplan_off", "epplan\t:\toff", "epplan:\u00a0off", "epplan:of",
		"epplan:offf", "epplan:0ff",
		"epplan:off=1", "epplan:off=true", "epplan:no", "epplan:none", "epplan:disable", "epplan:disabled",
		"epplan:false",
		"epplan:opt-out", "epplan:optout", "epplan:hands-off", "x=1,epplan:off", "--comment=epplan:off",
		"epplan:fixed=,off", "epplan:x,y,off",
	} {
		if w := slurm.ParseWishes(comment, now); !w.Off || w.HasFixedClocks() || !w.Deadline.IsZero() {
			t.Errorf("%q: %+v", comment, w)
		}
	}
	for _, comment := range []string{ // words about it
		"epplan", "thanks to epplan this took less", "ask epplan about it", "epplan's clocks, see off-line",
		"myepplan:off",
		"/epplan:off", "epplan offers clocks", "epplan is off", "off", "", "epplan.off",
	} {
		if w := slurm.ParseWishes(comment, now); w.Off || len(w.Warnings) > 0 {
			t.Errorf("%q: %+v", comment, w)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		either := func(word string) string {
			var b strings.Builder
			for _, r := range word {
				if rapid.Bool().Draw(t, "capital") {
					r = unicode.ToUpper(r)
				}
				b.WriteRune(r)
			}
			return b.String()
		}
		blank := rapid.SampledFrom([]string{"", " ", "\t", "  ", "\u00a0"})
		part := func() string {
			return blank.Draw(t, "blank") + rapid.SampledFrom([]string{",", ";", " "}).Draw(t, "part")
		}
		wish := rapid.SampledFrom([]string{
			"nocode", "fixed=1200", "fixed=1200,5001", "deadline=+1h", "slowdown=1.2",
		})
		text := rapid.SampledFrom([]string{"", "a note ", "x;", "(", "a=b,", "ü "}).Draw(t, "before") +
			either("epplan") +
			blank.Draw(t, "blank") + rapid.SampledFrom([]string{":", "=", "::"}).Draw(t, "sign") +
			blank.Draw(t, "blank")
		for range rapid.IntRange(0, 2).Draw(t, "wishes before") {
			text += either(wish.Draw(t, "wish")) + part() + blank.Draw(t, "blank") //nolint:perfsprint // few
		}
		text += either("off")
		for range rapid.IntRange(0, 2).Draw(t, "wishes behind") {
			text += part() + blank.Draw(t, "blank") + either(wish.Draw(t, "wish")) //nolint:perfsprint // few
		}
		text += rapid.SampledFrom([]string{"", ";", " ", ".", ")", ", thanks"}).Draw(t, "behind")
		if w := slurm.ParseWishes(text, now); !w.Off || w.HasFixedClocks() || !w.Deadline.IsZero() ||
			w.Slowdown != 0 {
			t.Fatalf("%q: %+v", text, w)
		}
	})
}
