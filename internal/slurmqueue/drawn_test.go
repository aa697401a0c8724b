package slurmqueue_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/slurmqueue"
	"github.com/epplan/epplan/live"
)

// drawQueue draws jobs that wait or run, in two partitions whose nodes are alike.
func drawQueue(t *rapid.T) *epdapi.Queue {
	partitions := [][]string{{"a"}, {"b"}, {"a", "b"}}
	q := &epdapi.Queue{Nodes: []epdapi.QueueNode{
		{GPUModel: "V100", GPUs: 8, Count: 1, Partitions: partitions[2]},
	}}
	for range rapid.IntRange(0, 3).Draw(t, "further nodes") {
		q.Nodes = append(q.Nodes, epdapi.QueueNode{
			GPUModel: "V100", GPUs: 4, Count: rapid.IntRange(1, 3).Draw(t, "count"),
			Partitions: rapid.SampledFrom(partitions).Draw(t, "partitions"),
		})
	}
	for id := range rapid.Int64Range(1, 20).Draw(t, "jobs") {
		gpus := rapid.IntRange(1, 4).Draw(t, "gpus")
		limit := float64(60 * rapid.IntRange(1, 600).Draw(t, "minutes"))
		j := waits(id+1, gpus, limit, float64(rapid.IntRange(0, 20_000).Draw(t, "waited")))
		if rapid.IntRange(0, 3).Draw(t, "runs") == 0 {
			j = runs(id+1, gpus, limit)
		}
		j.Partition = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "partition")
		q.Jobs = append(q.Jobs, j)
	}
	return q
}

// A deadline that is over, or that nobody can meet, changes nothing.
func TestAHopelessDeadlineIsNone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := drawQueue(t)
		policies := []string{"replan,pace=1", "edl", "edl:0.8", "edl-bin", "value", "easy"}
		wanted := planned(rapid.SampledFrom(policies).Draw(t, "policy"))
		without, err := slurmqueue.NewPlan(t.Context(), q, usual(), wanted, dayStart)
		if err != nil {
			t.Fatal(err)
		}
		q.Jobs = slices.Clone(q.Jobs)
		late := &q.Jobs[rapid.IntRange(0, len(q.Jobs)-1).Draw(t, "late")]
		late.DeadlineS = live.Known(float64(rapid.IntRange(-5000, 30).Draw(t, "seconds until its deadline")))
		with, err := slurmqueue.NewPlan(t.Context(), q, usual(), wanted, dayStart)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(with.Jobs, without.Jobs) {
			t.Errorf("by %s\nwith\n%s\nwithout\n%s", wanted.Policy, startsOf(with), startsOf(without))
		}
	})
}

// startsOf returns when a plan has which jobs start and end.
func startsOf(p *live.Plan) string {
	var text strings.Builder
	for i := range p.Jobs {
		j := &p.Jobs[i]
		_, _ = fmt.Fprintf(&text, "%s %s to %s %v %s; ", j.Task, j.Start.Sub(dayStart), j.End.Sub(dayStart),
			j.Setting, j.Reason)
	}
	return text.String()
}
