package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/testkit/commandtest"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/internal/textfile"
)

func TestPoliciesAreSeparatedAtCommasThatArentTheirArguments(t *testing.T) {
	for _, c := range []struct {
		given []string
		want  []string
	}{
		{[]string{"fgd"}, []string{"fgd"}},
		{[]string{"fgd,pwr", "bestfit"}, []string{"fgd", "pwr", "bestfit"}},
		{[]string{"fgd, pwr+fgd:0.1,Random"}, []string{"fgd", "pwr+fgd:0.1", "Random"}},
		{[]string{"priced:1,2,3,fgd"}, []string{"priced:1,2,3", "fgd"}},
		{[]string{"mix:pwr=1,fgd=2,mix:fgd=1,random=2"}, []string{"mix:pwr=1,fgd=2", "mix:fgd=1,random=2"}},
		{
			[]string{"potential:room=0.3, pwr", "pwr+fgd:0.1, Random"},
			[]string{"potential:room=0.3", "pwr", "pwr+fgd:0.1", "Random"},
		},
		{[]string{"fgd,nosuch"}, []string{"fgd", "nosuch"}},
		{[]string{","}, []string{"", ""}},
	} {
		if got := splitPlacements(c.given); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.given, got, c.want)
		}
	}
}

// madeTrace returns a folder with a synthetic trace.
func madeTrace(t *testing.T, nodes string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "demo")
	if code, _, stderr := inProcess(t, "generate", "openb", "--nodes", nodes, dir); code != terminal.ExitDone {
		t.Fatal(stderr)
	}
	return dir
}

// wantRefused checks that a replay of a made trace isn't begun, and why.
func wantRefused(t *testing.T, code int, why string, args ...string) {
	t.Helper()
	got, stdout, stderr := inProcess(t, append([]string{"replay"}, args...)...)
	if got != code || stdout != "" || !strings.Contains(stderr, why) {
		t.Errorf("%q: exit status %d, printed %q, %q, want %d and %q", args, got, stdout, stderr, code, why)
	}
}

func TestWhatAReplayWritesHasNamesOfItsOwn(t *testing.T) {
	dir := madeTrace(t, "2")
	for _, flags := range [][]string{
		{"--curve", dir, "--decisions", dir + "/"},
		{"--curve", "one.csv", "--decisions", "./one.csv"},
		{"--curve", "one", "--svg", "one"},
		{"--decisions", "one", "--svg", "one"},
	} {
		wantRefused(
			t,
			terminal.ExitUsage,
			"is to be written twice",
			append([]string{dir, "-p", "pwr"}, flags...)...)
	}
	for _, flags := range [][]string{
		{"--curve", dir, "--svg", dir},
		{"--curve", os.DevNull, "--decisions", os.DevNull},
	} {
		if code, _, stderr := inProcess(t, append([]string{"replay", dir, "-p", "pwr"}, flags...)...); code !=
			terminal.ExitDone {
			t.Errorf("%q: exit status %d, %q", flags, code, stderr)
		}
	}
}

func TestReplaysThatFillTheMemoryOrRunOutOfSeedsAreRefused(t *testing.T) {
	dir := madeTrace(t, "1")
	wantRefused(t, terminal.ExitUsage, "10000 runs up to load 100, want at most 1000", dir, "-p", "pwr",
		"--load", "100", "--seeds", "10000")
	wantRefused(t, terminal.ExitUsage, "want up to 9223372036854775807", dir, "-p", "pwr", "--seed",
		"9223372036854775808")
	wantRefused(t, terminal.ExitUsage, "want up to 9223372036854775806", dir, "-p", "pwr", "--seed",
		"9223372036854775807", "--seeds", "2")
	if code, _, stderr := inProcess(t, "replay", dir, "-p", "pwr", "--seed", "9223372036854775806", "--seeds",
		"2"); code != terminal.ExitDone {
		t.Errorf("exit status %d, %q", code, stderr)
	}
}

func TestAnInterruptedReplayLeavesTheOldCurveAlone(t *testing.T) {
	dir := madeTrace(t, "10")
	curve := filepath.Join(dir, "curve.csv")
	if err := os.WriteFile(curve, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	stdout := wantInterrupted(t, "replay", dir, "-p", "pwr",
		"--curve", curve)
	text, err := os.ReadFile(curve)
	if stdout != "" || err != nil || string(text) != "old" {
		t.Errorf("printed %q, curve %q, %v", stdout, text, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != len(before) {
		t.Errorf("files left: %v, %v", left, err)
	}
}

func TestALongReplayStopsWithinASecond(t *testing.T) {
	dir := madeTrace(t, "1213")
	underTest().WantStopped(t, 300*time.Millisecond, "replay", dir, "--seeds", "1000")
}

func TestSpreadsAreMeansAndSampleDeviations(t *testing.T) {
	values := []float64{1, 2, 6}
	s := meanSDOf(len(values), func(i int) float64 { return values[i] })
	if s.mean != 3 || s.sd*s.sd < 6.999999 || s.sd*s.sd > 7.000001 {
		t.Errorf("%+v", s)
	}
	if one := meanSDOf(1, func(int) float64 { return 5 }); one != (meanSD{mean: 5}) {
		t.Errorf("%+v", one)
	}
	if got := terminal.Fixed(-0.04, 1); got != "0.0" {
		t.Errorf("%q", got)
	}
}

func TestAReplayOfAGivenStreamWritesTheReferencesFiles(t *testing.T) {
	data := shareddata.Path(t, "openb")
	for _, c := range []struct{ family, policy, reference string }{
		{"default", "pwr+fgd:0.1", "default_PWR100_FGD900_42.csv"},
		{"default", "FGD", "default_FGD_42.csv"},
		{"gpuspec10", "dotprod", "gpuspec10_DotProd_42.csv"},
		{"multigpu20", "random", "multigpu20_Random_42.csv"},
	} {
		dir := t.TempDir()
		curve, decisions := filepath.Join(dir, "curve.csv"), filepath.Join(dir, "decisions.csv.gz")
		code, _, stderr := inProcess(t, "replay", "--pods",
			filepath.Join(data, "openb_pod_list_"+c.family+".csv"),
			"--nodes", filepath.Join(data, "openb_node_list_gpu_node.csv"),
			"--arrivals", filepath.Join(data, "arrivals_"+c.family+"_42.csv.gz"),
			"--node-order", filepath.Join(data, "nodes_"+c.family+"_42.csv"),
			"--policy", c.policy, "--curve", curve, "--decisions", decisions)
		if code != terminal.ExitDone {
			t.Fatalf("exit status %d: %s", code, stderr)
		}
		wantSameText(t, curve, filepath.Join(data, "curves", c.reference))
		if c.policy != "dotprod" && c.policy != "random" {
			wantSameText(t, decisions, filepath.Join(data, "decisions", c.reference+".gz"))
		}
	}
}

func TestASeedAloneLeadsToTheReferencesCurve(t *testing.T) {
	data := shareddata.Path(t, "openb")
	curve := filepath.Join(t.TempDir(), "curve.csv.gz")
	if code, _, stderr := inProcess(t, "replay", data, "--family", "gpushare40", "--policy", "pwr", "--curve",
		curve); code != terminal.ExitDone {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	wantSameText(t, curve, filepath.Join(data, "curves", "gpushare40_PWR_42.csv"))
}

// wantSameText compares two files, which may be compressed.
func wantSameText(t *testing.T, got, want string) {
	t.Helper()
	texts := make([][]byte, 2)
	for i, name := range []string{got, want} {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		in, err := textfile.Decompress(file, name)
		if err == nil {
			texts[i], err = io.ReadAll(in)
		}
		if err := errors.Join(err, file.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(texts[0], texts[1]) {
		t.Errorf("%s differs from %s: %s", filepath.Base(got), filepath.Base(want),
			commandtest.FirstDifference(string(texts[0]), string(texts[1])))
	}
}
