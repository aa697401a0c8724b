package planner_test

import "github.com/epplan/epplan/internal/testkit/plannertest"

// The words of these tests.
var (
	solve, solveWith = plannertest.Solve, plannertest.SolveWith

	job, at, profiled           = plannertest.Job, plannertest.At, plannertest.Profiled
	fixed, scalable, continuous = plannertest.Fixed, plannertest.Scalable, plannertest.Continuous

	paperLike, mixed, twoByFour = plannertest.PaperLike, plannertest.Mixed, plannertest.TwoByFour
	sharedCluster, curved       = plannertest.SharedCluster, plannertest.Curved
)
