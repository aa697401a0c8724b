package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/lab/trace"
)

// chosenFor returns what plan says that it chose for a queue.
func chosenFor(t *testing.T, queue string, args ...string) string {
	t.Helper()
	code, stdout, stderr := inProcess(t, append([]string{
		"plan", "--cluster", "../../examples/two-types/clusters.csv:small", queue,
	}, args...)...)
	if code != terminal.ExitDone {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	plan := regexp.MustCompile(`(?m)^Plan .*chosen among \d+ on drawn outcomes.*$`).FindString(stdout)
	if plan == "" {
		t.Fatalf("no choice in %s", stdout)
	}
	return plan
}

func TestThePolicyOfAQueueIsChosenWithoutItsTruth(t *testing.T) {
	text, err := os.ReadFile("../../examples/two-types/queue.csv")
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 3))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for i, line := range lines[1:] {
		cells := strings.Split(line, ",")
		for column := 5; column < 9; column++ { // t_a_s to e_b_kwh
			was, err := strconv.ParseFloat(cells[column], 64)
			if err != nil {
				t.Fatal(err)
			}
			cells[column] = fmt.Sprint(was * (0.01 + 20*rng.Float64()))
		}
		lines[1+i] = strings.Join(cells, ",")
	}
	other := filepath.Join(t.TempDir(), "other.csv")
	if err := os.WriteFile(other, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if a, b := chosenFor(t, "../../examples/two-types/queue.csv"), chosenFor(t, other); a != b {
		t.Errorf("%s, and with other outcomes %s", a, b)
	}
}

func TestTheChoiceFollowsFromTheSeed(t *testing.T) {
	queue := func(seed uint64) *knapsackQueue {
		q, err := drawQueue(rand.New(rand.NewPCG(5, 5)), trace.Coupled)
		if err != nil {
			t.Fatal(err)
		}
		q.params.Queue.Look.Seed = seed
		return q
	}
	times := func(seed uint64) (all []float64) {
		drawn, err := queue(seed).drawOutcomes()
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range drawn {
			all = append(all, q.jobs[0].Actual[0].Seconds)
		}
		return all
	}
	if a, b := fmt.Sprint(times(1)), fmt.Sprint(times(1)); a != b {
		t.Errorf("outcomes %s and %s of one seed", a, b)
	}
	if a, b := fmt.Sprint(times(1)), fmt.Sprint(times(2)); a == b {
		t.Errorf("outcomes %s of two seeds", a)
	}
}

func TestTheLeastSumWinsWithinTheLongestWait(t *testing.T) {
	for _, c := range []struct {
		name string
		all  []trialResult
		want int
	}{
		{
			"least sum", []trialResult{
				{Energy: 1, Wait: 1, Longest: 1}, {Energy: 0.5, Wait: 0.9, Longest: 1},
			}, 1,
		},
		{
			"waits too long", []trialResult{
				{Energy: 1, Wait: 1, Longest: 1}, {Energy: 0.5, Wait: 0.9, Longest: 3.1},
			}, 0,
		},
		{
			"the usual one waits too long", []trialResult{
				{Energy: 0.2, Wait: 1, Longest: 3.1}, {Energy: 1, Wait: 1, Longest: 1},
			}, 1,
		},
		{
			"near tie", []trialResult{
				{Energy: 0.7, Wait: 0.6, Longest: 1}, {
					Policy: "lookahead,weight=0", Energy: 0.69, Wait: 0.6, Longest: 1,
				},
			}, 0,
		},
		{
			"another weight", []trialResult{
				{Energy: 0.7, Wait: 0.6, Longest: 1}, {
					Policy: "lookahead,weight=0", Energy: 0.66, Wait: 0.6, Longest: 1,
				},
			}, 1,
		},
		{
			"another rule", []trialResult{
				{Energy: 0.7, Wait: 0.6, Longest: 1}, {Policy: "value", Energy: 0.66, Wait: 0.6, Longest: 1},
			}, 0,
		},
	} {
		if got := bestTrial(c.all); got != c.want {
			t.Errorf("%s: %d chosen, want %d", c.name, got, c.want)
		}
	}
}
