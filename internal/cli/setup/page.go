package setup

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/planner"
	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
)

// BatchName returns a batch's name for people.
func BatchName(name string) string {
	if name == "-" {
		return "standard input"
	}
	return filepath.Base(name)
}

// Inputs returns the files that a plan was made of.
func (s *Setup) Inputs(c *cli.Context, batches ...string) []page.Fact {
	var facts []page.Fact
	if len(batches) == 0 {
		batches = []string{s.Batch.Name}
	}
	facts = append(facts, page.Fact{Name: "Batch", Text: strings.Join(batches, ", ")})
	cluster := clusterText(&s.Problem.Cluster)
	for _, flag := range []string{"cluster", "config"} {
		if name := c.String(flag); name != "" {
			cluster = name + ": " + cluster
		}
	}
	facts = append(facts, page.Fact{Name: "Cluster", Text: cluster})
	for _, f := range [][2]string{
		{"Models", strings.Join(c.StringSlice("models"), ", ")},
		{"GPU profiles", c.String("profiles")},
	} {
		if f[1] != "" {
			facts = append(facts, page.Fact{Name: f[0], Text: f[1]})
		}
	}
	return facts
}

func clusterText(cluster *planner.Cluster) string {
	parts := make([]string, len(cluster.Classes))
	for i := range parts {
		k := &cluster.Classes[i]
		count := "as many nodes as it takes"
		if k.Count > 0 {
			count = report.Plural(k.Count, "node")
		}
		parts[i] = fmt.Sprintf("%s of %s with %d × %s", count, terminal.OrDash(k.Name), k.GPUs,
			terminal.OrDash(k.Model))
	}
	return strings.Join(parts, ", ")
}
