package main

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/lab/queuereport"
	"github.com/epplan/epplan/lab/taskset"
	"github.com/epplan/epplan/lab/trace"
)

// How the policy of a queue without --policy is chosen: the usual one stays
// unless another one's sum of energy and waiting, each against policy simple, is
// less by more than the margin, which is larger for other rules: with few futures
// lookahead seems worse than it is.
const (
	defaultQueuePolicy = "lookahead"
	chooseDraws        = 12           // of the outcomes
	maxLongestWait     = 3.0          // times the longest wait of policy simple, on average over the draws
	marginWeight       = 0.02         // of lookahead with another weight
	marginRule         = 0.1          // of another rule
	trialFutures       = ",futures=4" // of lookahead while it is tried
)

// candidates returns the policies that are tried for a queue, the usual one first.
func (q *knapsackQueue) candidates() []string {
	all := []string{
		defaultQueuePolicy, "lookahead,weight=0.3", "lookahead,weight=0.15", "lookahead,weight=0",
		"value", "value,kappa=1e-7", "posted-price", "simple-backfill", "simple",
	}
	if q.hasClocks() {
		for _, text := range slices.Clone(all) {
			all = append(all, text+",stretch=1.1", text+",clocks=default")
		}
	}
	return all
}

// choosePolicy returns the policy for a queue that none is named for, and the number of
// those that it is chosen from. They are played on the queue with outcomes that
// are drawn around the predictions: how jobs really turn out isn't looked at.
func choosePolicy(
	t *terminal.Terminal,
	c *cli.Context,
	q *knapsackQueue,
) (text string, among int, err error) {
	drawn, err := q.drawOutcomes()
	if err != nil {
		return "", 0, err
	}
	all := q.candidates()
	progress := report.NewProgress(t.Stderr, t.Progress, time.Now, "choose", (len(all)+1)*len(drawn))
	tried, err := tryCandidates(c.Context, drawn, all, func() { progress.Add(1) })
	progress.Finish()
	if err != nil {
		return "", 0, err
	}
	return withFlagParams(c, all[bestTrial(tried)]), len(all), nil
}

// withFlagParams returns a chosen policy with the numbers that flags gave it, so that it says
// by itself which plan it makes.
func withFlagParams(c *cli.Context, text string) string {
	rule, _, _ := strings.Cut(text, ",")
	switch {
	case rule == "value" && c.IsSet("kappa") && !strings.Contains(text, "kappa="):
		text += ",kappa=" + strconv.FormatFloat(c.Float64("kappa"), 'g', -1, 64)
	case rule == defaultQueuePolicy && c.IsSet("seed"):
		text += ",seed=" + strconv.FormatUint(c.Uint64("seed"), 10)
	}
	return text
}

// drawOutcomes are copies of the queue that turn out as drawn around the
// predictions, the same ones for the same seed.
func (q *knapsackQueue) drawOutcomes() ([]*knapsackQueue, error) {
	all := make([]*knapsackQueue, chooseDraws)
	for i := range all {
		rng := rand.New(rand.NewPCG(q.params.Queue.Look.Seed, uint64(i)))
		jobs := slices.Clone(q.jobs)
		for j := range jobs {
			jobs[j].Actual = taskset.DrawOutcome(rng, q.model, &jobs[j].Forecast)
		}
		drawn, err := newKnapsackQueue(q.model, jobs, q.pool)
		if err != nil {
			return nil, err
		}
		drawn.params, drawn.response = q.params, q.response
		if q.hasClocks() {
			if err := trace.EnableClocks(jobs, drawn.predicted, drawn.actual, q.response); err != nil {
				return nil, err
			}
		}
		all[i] = drawn
	}
	return all, nil
}

// tryCandidates plays every policy on every draw, with less work for each
// decision than later. Who waits where nobody does under simple is out.
func tryCandidates(
	ctx context.Context, drawn []*knapsackQueue, policies []string, done func(),
) ([]trialResult, error) {
	played := append(make([]string, 0, 1+len(policies)), drawn[0].referencePolicy())
	for _, text := range policies {
		if strings.HasPrefix(text, defaultQueuePolicy) {
			text += trialFutures
		}
		played = append(played, text)
	}
	sums, err := playAll(ctx, drawn, played, done)
	if err != nil {
		return nil, err
	}
	waits := func(s *queuereport.Sum) bool { return s.TotalWait > 0 }
	simple := sums[:len(drawn)]
	all := make([]trialResult, 0, len(policies))
	for list := range slices.Chunk(sums[len(drawn):], len(drawn)) {
		x := againstSimple(policies[len(all)], list, simple)
		x.Longest = ratioOrOne(sumLongestWaits(list), sumLongestWaits(simple))
		if slices.ContainsFunc(list, waits) && !slices.ContainsFunc(simple, waits) {
			x.Wait = math.Inf(1)
		}
		all = append(all, x)
	}
	return all, nil
}

func sumLongestWaits(list []*queuereport.Sum) (seconds float64) {
	for _, s := range list {
		seconds += s.LongestWait
	}
	return seconds
}

// bestTrial returns the place of the policy to choose; the first one is the usual one.
func bestTrial(all []trialResult) int {
	best, least := 0, math.Inf(1)
	for i := range all {
		x := &all[i]
		sum := x.Energy + x.Wait
		switch {
		case x.Longest > maxLongestWait:
			continue
		case i > 0 && strings.HasPrefix(x.Policy, defaultQueuePolicy):
			sum += marginWeight
		case i > 0:
			sum += marginRule
		}
		if sum < least {
			best, least = i, sum
		}
	}
	return best
}
