package main

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/cli/setup"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/slurmqueue"
	"github.com/epplan/epplan/internal/view"
	"github.com/epplan/epplan/queue"
)

// setupFromSlurm returns a setup with Slurm's queue as the batch; nil when nothing waits.
func setupFromSlurm(t *terminal.Terminal, c *cli.Context) (*setup.Setup, error) {
	const why = "is about a batch file, want none with --from-slurm"
	if err := terminal.Refuse(c, why, "models", "map", "header", "ignore-columns", "format",
		"clairvoyant"); err != nil {
		return nil, err
	}
	s := &setup.Setup{Paper: c.String("cluster") == config.PaperModel, Seed: c.Uint64("seed")}
	if s.Paper {
		return nil, terminal.Usagef("--cluster paper has no GPU models of Slurm's, want a file or none " +
			"with --from-slurm")
	}
	if err := s.CheckPaperFlags(c); err != nil {
		return nil, err
	}
	q, err := ask(c, publicFirst, (*epdapi.Client).Queue)
	if err != nil {
		return nil, err
	}
	if s.Profiles, err = slurmqueue.Profiles(q); err != nil {
		return nil, err
	}
	if err := s.Configure(t, c); err != nil {
		return nil, err
	}
	if name := c.String("config"); name != "" && !s.Config.HasNodes() {
		return nil, setup.NoNodesError(name)
	}
	if c.String("config") == "" && c.String("cluster") == "" {
		if err := useSlurmNodes(t, s, q.Nodes); err != nil {
			return nil, err
		}
	}
	models, warnings, err := slurmqueue.Models(q.Models, s.Config.Profiles())
	if err != nil {
		return nil, err
	}
	t.Warn(warnings)
	s.Models = models
	cluster, catalog := s.Config.Cluster(), setup.NewCatalog(s.Config.SiteProfiles(), s.Models, &s.Scaling)
	waiting := slurmqueue.NewBatch(q, &cluster, s.NodePartitions, catalog)
	t.Message("note", "Slurm's queue as of "+sinceText(q.At, time.Now()))
	noteQueueAssumptions(t, waiting)
	if len(waiting.Jobs) == 0 {
		return nil, nil
	}
	s.QueueAt, s.SlurmQueue = q.At, waiting
	s.Batch = &queue.Batch{Name: "Slurm's queue of " + view.DateTime(q.At), Jobs: waiting.Jobs}
	return setup.Complete(t, c, s)
}

// useSlurmNodes takes the nodes that Slurm reports.
func useSlurmNodes(t *terminal.Terminal, s *setup.Setup, nodes []epdapi.QueueNode) error {
	cluster, partitions, warnings, err := slurmqueue.Cluster(nodes, s.Profiles)
	t.Warn(warnings)
	if errors.Is(err, slurmqueue.ErrNoNodes) {
		return terminal.WithHint(err, "describe the cluster with --cluster, or its GPU model with --profiles")
	}
	s.Config, s.NodePartitions = cluster, partitions
	return err
}

// sinceText returns a time and how long ago it was; the clocks of two machines may
// differ, so that what is to come is now.
func sinceText(at, now time.Time) string {
	return view.DateTime(at) + ", " + report.FormatSeconds(
		max(0, math.Round(now.Sub(at).Seconds())),
	) + " ago"
}

// noteQueueAssumptions says what a plan of what waits leaves out and assumes.
func noteQueueAssumptions(t *terminal.Terminal, w *slurmqueue.Batch) {
	if w.Unknown > 0 {
		t.Notef("%d of %s without a model: default clocks for as long as the time limit", w.Unknown,
			report.Plural(len(w.Jobs), "job"))
	}
	parts := terminal.TextsOf(terminal.Present(
		terminal.Count(w.Left.Held, terminal.Printable(w.Left.Text())),
		terminal.Count(w.Left.Several, "with unequal parts on several nodes"),
		terminal.Count(w.Left.Endless, "without model and time limit"),
		terminal.Count(w.Left.Many, "beyond what epd lists"),
	), func(part terminal.Counted) string { return fmt.Sprintf("%d %s", part.N, part.What) })
	if len(parts) > 0 {
		t.Message("note", "left out: "+strings.Join(parts, ", "))
	}
	if w.Running.Jobs > 0 {
		text := fmt.Sprintf("%s %s until they are expected to end",
			report.Plural(w.Running.Jobs, "running job holds", "running jobs hold"),
			report.Plural(w.Running.GPUs, "GPU"))
		if w.Running.Without > 0 {
			text += fmt.Sprintf("; the cluster has no room for %d of them", w.Running.Without)
		}
		t.Message("note", text)
	}
	if len(w.Jobs) == 0 {
		t.Message("note", "no job with GPUs waits that can be planned")
	}
}
