package hooks

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

func TestOptionsOfAScriptAreRead(t *testing.T) {
	for name, tc := range map[string]struct{ script, want string }{
		"none":    {"", ""},
		"no mark": {"#!/bin/sh\n# SBATCH --gpus=1\n#SBATCHED -N 2\n", ""},
		"long":    {"#!/bin/sh\n#SBATCH --gpus=2\n#SBATCH --time 1:00\n", "gpus=2@2 time=1:00@3"},
		"short": {
			"#SBATCH -N2 -p gpu -t 5 -Jname\n", "nodes=2@1 partition=gpu@1 time=5@1 job-name=name@1",
		},
		"after a command": {"#SBATCH -N 1\n\n# remark\n  \ntrue\n#SBATCH -N 2\n", "nodes=1@1"},
		"quoted": {
			`#SBATCH --comment="epplan:off; a b" -J 'it is' --account=a\ b` + "\n",
			"comment=epplan:off; a b@1 job-name=it is@1 account=a b@1",
		},
		"remark": {
			"#SBATCH --gpus=1 # --gpus=2\n#SBATCH --comment=a#b\n", "gpus=1@1 comment=a#b@2",
		},
		"unknown ones": {
			"#SBATCH -o log --exclusive -H --mail-user me -G 3\n", "exclusive=@1 mail-user=me@1 gpus=3@1",
		},
		"DOS":               {"#!/bin/sh\r\n#SBATCH --gpus=1\r\n", "gpus=1@2"},
		"no end":            {"#SBATCH --gpus=1", "gpus=1@1"},
		"an open quote":     {"#SBATCH --comment=\"a b\n#SBATCH -G 1\n", "comment=a b\n@1 gpus=1@2"},
		"nothing but marks": {"#SBATCH\n#SBATCH -\n#SBATCH --\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			options := SbatchOptions(tc.script)
			got := make([]string, 0, len(options))
			for _, o := range options {
				got = append(got, fmt.Sprintf("%s=%s@%d", o.Name, o.Value, o.Line))
			}
			if text := strings.Join(got, " "); text != tc.want {
				t.Errorf("got  %q\nwant %q", text, tc.want)
			}
		})
	}
}

func TestOptionsBecomeASubmission(t *testing.T) {
	var s Submission
	for _, o := range [][2]string{
		{"gpus", "v100:2,h200:1"},
		{"gres", "gpu:1"},
		{"gpus-per-task", "1"},
		{"nodes", "2-4"},
		{"ntasks", "8"},
		{"time", "1-2:30"},
		{"partition", "gpu"},
		{"job-name", "n"},
		{"comment", "epplan:off"},
		{"gpu-freq", "high"},
		{"array", "1-9"},
		{"output", "x"},
	} {
		if err := s.SetOption(o[0], o[1]); err != nil {
			t.Errorf("--%s=%s: %v", o[0], o[1], err)
		}
	}
	if s.TRESPerJob != "gres/gpu:v100:2,gres/gpu:h200:1" || s.TRESPerNode != "gpu:1" ||
		s.TRESPerTask != "gres/gpu:1" || s.MinNodes != 2 || s.NumTasks != 8 ||
		s.TimeLimit != 26*60+30 || s.Partition != "gpu" || s.Name != "n" || s.Comment != "epplan:off" ||
		s.TRESFreq != "high" || s.Array != "1-9" {
		t.Errorf("%+v", s)
	}
	if !s.WantsGPU() {
		t.Error("it doesn't ask for GPUs")
	}
	for text, want := range map[string]live.Limit{
		"UNLIMITED": live.Unlimited(), "0:30": live.LimitOf(time.Minute),
		"90": live.LimitOf(90 * time.Minute), "": {},
	} {
		if err := s.SetOption("time", text); err != nil || s.Limit() != want {
			t.Errorf("--time=%s is %+v, %v", text, s.Limit(), err)
		}
	}
}

func TestOptionsThatSbatchWouldRefuseAreErrors(t *testing.T) {
	for _, o := range [][2]string{
		{"gpus", "many:of:them:3"},
		{"gres", "gpu:1:2:3:4"},
		{"nodes", "0"},
		{"nodes", "-1"},
		{"nodes", "few"},
		{"ntasks", "99999999999"},
		{"time", "soon"},
		{"time", "0"},
		{"gpus", "a(b"},
	} {
		var s Submission
		if err := s.SetOption(o[0], o[1]); err == nil || !strings.HasPrefix(err.Error(), "--"+o[0]+": ") {
			t.Errorf("--%s=%s: %v, %+v", o[0], o[1], err, s)
		}
	}
	var s Submission
	if err := s.SetOption("comment", strings.Repeat("x", slurm.MaxText+1)); !errors.Is(err, slurm.ErrInvalid) {
		t.Errorf("a long text: %v", err)
	}
}

func FuzzBatchOptions(f *testing.F) {
	for _, seed := range []string{
		"", "#SBATCH", "#!/bin/sh\n#SBATCH --gpus=1 -N2", "#SBATCH \"\\", "#SBATCH -\xff '",
		"#SBATCH --=x -=\n#SBATCH --time=9999999999999999-1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, script string) {
		var s Submission
		lines := strings.Count(script, "\n") + 1
		for _, o := range SbatchOptions(script) {
			if o.Line < 1 || o.Line > lines || o.Name == "" {
				t.Fatalf("%+v", o)
			}
			_ = s.SetOption(o.Name, o.Value)
		}
		if l := s.Limit(); l.Seconds() < 60 {
			t.Fatalf("limit %+v", l)
		}
	})
}
