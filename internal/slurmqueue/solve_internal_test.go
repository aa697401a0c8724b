package slurmqueue

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
)

// inRounds is solveEach as one would say it first: what has no place for its deadline goes without, until all
// have one.
func inRounds(t *rapid.T, problem *planner.Problem, chosen *planner.Policy) (plan *planner.Plan, rounds int) {
	for {
		rounds++
		if err := policy.ImplyDue(t.Context(), problem, 1.5); err != nil {
			t.Fatal(err)
		}
		plan, err := policy.SolveChecked(t.Context(), problem, chosen, &planner.Options{Seed: planner.DefaultSeed})
		if err != nil {
			t.Fatal(err)
		}
		if rounds == maxReplans || !dropMissedDeadlines(problem, plan) {
			return plan, rounds
		}
	}
}

// metDeadlines returns how many deadlines of a problem a plan meets.
func metDeadlines(p *planner.Problem, plan *planner.Plan) (count int) {
	for i := range plan.Assignments {
		a, deadline := &plan.Assignments[i], p.Tasks[i].Deadline
		if a.Node >= 0 && a.End <= deadline && !math.IsInf(deadline, 1) {
			count++
		}
	}
	return count
}

// TestDeadlinesThatNobodyCanKeepTakeNoRoundOfTheirOwn draws queues with deadlines, some of them lost whatever
// runs, others to other jobs.
func TestDeadlinesThatNobodyCanKeepTakeNoRoundOfTheirOwn(t *testing.T) {
	saved := 0
	rapid.Check(t, func(t *rapid.T) {
		q := &epdapi.Queue{Nodes: []epdapi.QueueNode{
			{GPUModel: "V100", GPUs: 4, Count: rapid.IntRange(1, 3).Draw(t, "nodes")},
		}}
		for id := range rapid.IntRange(1, 20).Draw(t, "jobs") {
			limit := float64(60 * rapid.IntRange(1, 60).Draw(t, "minutes"))
			q.Jobs = append(q.Jobs, epdapi.QueuedJob{
				ID: int64(id + 1), User: "ada", State: "PENDING", Nodes: 1, Limit: live.LimitOfSeconds(limit),
				GPUs: rapid.IntRange(1, 4).Draw(t, "gpus"), AgeS: live.Known(float64(100 - id)),
				RuntimeS: live.Known(limit), PowerW: live.Known(100),
				DeadlineS: live.Known(limit * rapid.Float64Range(0.5, 4).Draw(t, "room")),
			})
		}
		chosen, err := policy.Parse(rapid.SampledFrom([]string{"edl", "value", "edl-bin"}).Draw(t, "policy"),
			policy.DefaultParams())
		if err != nil {
			t.Fatal(err)
		}
		problem := func() *planner.Problem {
			settings := config.Default()
			p, err := new(WhatIf).problem(q, &PlanTerms{
				Profiles: config.BuiltinProfiles(), Goal: settings.Goal(), Safety: settings.Safety,
			}, PlanOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		want, rounds := inRounds(t, problem(), chosen)
		got, _, err := solveEach(t.Context(), problem(), chosen, 1.5)
		if err != nil {
			t.Fatal(err)
		}
		asked := problem()
		if met, could := metDeadlines(asked, got), metDeadlines(asked, want); met < could {
			t.Fatalf("%d deadlines are met, in rounds %d", met, could)
		}
		first := problem()
		dropImpossibleDeadlines(first)
		if _, fewer := inRounds(t, first, chosen); fewer < rounds {
			saved++
		}
	})
	if saved == 0 {
		t.Error("no round was ever saved")
	}
}
