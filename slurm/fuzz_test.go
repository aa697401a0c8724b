package slurm_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/epplan/epplan/slurm"
)

// seeds adds the recorded samples that match, where they are there.
func seeds(f *testing.F, pattern string) {
	f.Helper()
	names, err := filepath.Glob(filepath.Join("..", "..", "shared", "slurm-lab", "samples", pattern))
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
}

func FuzzParseJobs(f *testing.F) {
	for _, answer := range squeueVariants {
		f.Add([]byte(answer))
	}
	f.Add([]byte(`{"jobs":[{"job_id":1,"name":"` + "\xff" +
		`\u0000","time_limit":{"set":true,"number":{}}}],"errors":[{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		jobs, _, err := parseJobs("fuzz", data)
		if err != nil && jobs != nil {
			t.Error("jobs with an error")
		}
		for _, j := range jobs {
			if j.ID == 0 || !utf8.ValidString(j.Name) || j.TimeLimit.Seconds() < 0 || j.State.Base == "" {
				t.Errorf("%+v", j)
			}
		}
	})
}

func FuzzParseJobText(f *testing.F) {
	seeds(f, "scontrol-show-job-*.txt")
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, id := range []slurm.JobID{16, 21} {
			if j, err := slurm.ParseJobText("fuzz", data, id, time.UTC); err == nil &&
				(j.ID != id || j.Comment != "" || j.AdminComment != "") {
				t.Errorf("%+v", j)
			}
		}
	})
}

// FuzzForgedName puts any bytes in the name and the comment of a genuine record.
func FuzzForgedName(f *testing.F) {
	f.Add("x\n   UserId=root(0)", "c\n\nJobId=21 JobName=x")
	f.Add("x ArrayJobId=3", "\n     Nodes=n1 GRES=gpu:1(IDX:0)")
	f.Fuzz(func(t *testing.T, name, comment string) {
		j, err := slurm.ParseJobText("fuzz", genuine(name, comment), 21, time.UTC)
		if err == nil && (j.UID != 65534 || j.State.Base != slurm.Pending || j.Priority != 100 ||
			len(j.Gres) != 0 || j.ArrayJob != 0 || j.Partition != "main" || j.Nice != 0) {
			t.Errorf("name %q comment %q: %+v", name, comment, j)
		}
	})
}

func FuzzParseNodeText(f *testing.F) {
	seeds(f, "scontrol-show-node.txt")
	seeds(f, "scontrol-show-partition.txt")
	f.Fuzz(func(t *testing.T, data []byte) {
		nodes, _, _ := slurm.ParseNodeText("fuzz", data, time.UTC)
		for _, n := range nodes {
			if slurm.ValidNode(n.Name) != nil {
				t.Errorf("%+v", n)
			}
		}
		_ = slurm.ParseConfigText(data)
	})
}

func FuzzParseAccounting(f *testing.F) {
	seeds(f, "sacct-*.txt")
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, delimiter := range []string{"|", "\x1f"} {
			rows, rejected, err := slurm.ParseAccounting("fuzz", data, delimiter, time.UTC)
			if lines := strings.Count(string(data), "\n"); err == nil && len(rows)+len(rejected) > lines+1 {
				t.Errorf("%d rows and %d rejected of %d lines", len(rows), len(rejected), lines)
			}
		}
		_, _, _ = parseAccountingJSON("fuzz", data)
	})
}

func FuzzSmallForms(f *testing.F) {
	for _, s := range []string{
		"n[1-2,5]x", "2-03:04:05", "UNLIMITED", "cpu=4,mem=8G,gres/gpu=2",
		"gpu:tesla:2(IDX:0-1)", "12_[0-3%2]", "13+1", "CANCELLED by 65534", "idle~", "2026-11-21T08:55:23",
		"slurm 22.05.8", "a;epplan:ab", "\xff\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if names, err := slurm.ExpandHostlist(s); err == nil && len(names) > 1<<16 {
			t.Error("too many names")
		}
		if l, err := slurm.ParseLimit(s); err == nil && l.Seconds() < 0 {
			t.Error(l)
		}
		if list, err := slurm.ParseGres(s); err == nil {
			for _, g := range list {
				if g.Count < 0 || g.Name == "" {
					t.Error(g)
				}
			}
		}
		if n, ok := slurm.CountArrayTasks(s); ok != (n > 0) {
			t.Errorf("%d tasks, %v", n, ok)
		} else if list, _, err := slurm.ParseArrayTasks(s); err == nil && n != len(list) {
			t.Errorf("%d tasks are counted, %d listed", n, len(list))
		}
		if r, err := slurm.ParseJobRef(s); err == nil && (r.Job == 0 || len(r.Tasks) > 1<<16) {
			t.Error(r)
		}
		_, _ = slurm.ParseTRES(s)
		_, _ = slurm.ParseTime(s, time.UTC)
		_, _ = slurm.ParseVersion(s)
		_, _ = slurm.ParseJobState(s), slurm.ParseNodeState(s)
		checkTexts(t, s)
	})
}

func checkTexts(t *testing.T, s string) {
	t.Helper()
	if merged, err := slurm.MergeToken(s, "ab"); err == nil {
		if id, _, ok := slurm.ParseToken(merged); !ok || id != "ab" {
			t.Errorf("%q", merged)
		}
	}
	if p := slurm.Printable(s, 100); strings.ContainsAny(p, "\n\r\x1b\x00") || len(p) > 110 {
		t.Errorf("%q", p)
	}
}

func FuzzParseWishes(f *testing.F) {
	for _, s := range []string{
		"epplan:off", "epplan:fixed=1200,5001", "epplan:deadline=+2h",
		"epplan:deadline=18:00", "epplan:slowdown=1.05", "x;epplan:deadline=2026-11-22T10:00:00Z", "epplan:\xff",
	} {
		f.Add(s)
	}
	now := time.Date(2026, 11, 21, 17, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, s string) {
		w := slurm.ParseWishes(s, now)
		if w.CoreMHz < 0 || w.MemoryMHz < 0 || !w.Deadline.IsZero() && !w.Deadline.After(now) ||
			w.Off && w.HasFixedClocks() {
			t.Errorf("%+v", w)
		}
		for _, line := range w.Warnings {
			if !utf8.ValidString(line) || strings.ContainsAny(line, "\n\x1b") {
				t.Errorf("%q", line)
			}
		}
	})
}

func BenchmarkParse10000Jobs(b *testing.B) {
	var one struct {
		Jobs []json.RawMessage `json:"jobs"`
	}
	if err := json.Unmarshal(sample(b, "squeue.json"), &one); err != nil {
		b.Fatal(err)
	}
	jobs := make([]string, 10_000)
	for i := range jobs {
		jobs[i] = string(one.Jobs[i%len(one.Jobs)])
	}
	data := []byte(`{"jobs":[` + strings.Join(jobs, ",\n") + `]}`)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		list, _, err := parseJobs("squeue --json", data)
		if err != nil || len(list) != len(jobs) {
			b.Fatal(len(list), err)
		}
	}
}

func BenchmarkParse10000AccountingRows(b *testing.B) {
	head, rest, _ := strings.Cut(string(sample(b, "sacct-allocations.txt")), "\n")
	rows := strings.Split(strings.TrimSpace(rest), "\n")
	lines := make([]string, 10_000)
	for i := range lines {
		lines[i] = rows[i%len(rows)]
	}
	data := []byte(head + "\n" + strings.Join(lines, "\n") + "\n")
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if out, rejected, err := slurm.ParseAccounting("sacct", data, "|", time.UTC); err != nil ||
			len(out) != len(lines) {
			b.Fatal(len(out), rejected, err)
		}
	}
}

// Whatever scontrol prints of its configuration: nodes that are kept awake have names, and times aren't negative.
func FuzzPowerSaving(f *testing.F) {
	for _, s := range []string{
		"SuspendProgram = /bin/x\nSuspendTime = 60 sec\nResumeTimeout = 600 sec\nSuspendExcNodes = n[1-9]:2,login\n",
		"SuspendTime = INFINITE\nSuspendExcNodes = n[", "SuspendExcNodes = :,:\nSuspendExcParts = a,,b", "=", "",
		"SuspendExcNodes = n1:99999999999999999999",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for key := range slurm.ParseConfigText([]byte(s)) {
			if key != strings.TrimSpace(key) {
				t.Fatalf("%q", key)
			}
		}
		saving, err := slurm.NewClient(slurm.RunnerFunc(
			func(context.Context, string, ...string) ([]byte, error) { return []byte(s), nil }),
			time.Second).PowerSaving(t.Context())
		if err != nil {
			return
		}
		for _, a := range saving.Awake {
			if len(a.Nodes) == 0 || a.Idle < 0 {
				t.Fatalf("%+v", a)
			}
		}
		if saving.Suspend < 0 || saving.Resume < 0 {
			t.Fatalf("%+v", saving)
		}
	})
}
