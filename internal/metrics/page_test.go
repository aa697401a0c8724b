package metrics_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/metrics"
)

var update = flag.Bool("update", false, "rewrite the tables of docs/metrics.md")

const page = "../../docs/metrics.md"

var table = regexp.MustCompile(`(?s)(<!-- metrics of ([a-z ]+) -->\n).*?(<!-- end of metrics -->)`)

// described is what a page says of a metric.
type described struct{ kind, labels, help string }

// families are epplan's own metrics, by name.
func families(t *testing.T, m *metrics.Metrics) map[string]described {
	t.Helper()
	m.Failed("anything")
	all, err := m.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]described)
	for _, f := range all {
		if !strings.HasPrefix(f.GetName(), "epplan_") {
			continue
		}
		pairs := f.GetMetric()[0].GetLabel()
		labels := make([]string, len(pairs))
		for i, l := range pairs {
			labels[i] = "`" + l.GetName() + "`"
		}
		found[f.GetName()] = described{
			strings.ToLower(f.GetType().String()), strings.Join(labels, ", "), f.GetHelp(),
		}
	}
	return found
}

// rows returns a table of metrics in Markdown.
func rows(of map[string]described) string {
	var b strings.Builder
	b.WriteString("\n| name | meaning (labels) |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(of)) {
		help := strings.TrimSuffix(of[name].help, ".")
		if first, rest, _ := strings.Cut(help, " "); first != "GPUs" && first != "Slurm" && first != "GPU" {
			help = strings.TrimSpace(strings.ToLower(first) + " " + rest)
		}
		if labels := of[name].labels; labels != "" {
			help += " (" + labels + ")"
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, help)
	}
	return b.String() + "\n"
}

// kindByName returns a metric's type by the rule that the page states.
func kindByName(name string) string {
	switch {
	case name == "epplan_request_duration_seconds":
		return "histogram"
	case strings.HasSuffix(name, "_total"):
		return "counter"
	}
	return "gauge"
}

func TestThePageListsTheMetricsAsTheyAre(t *testing.T) {
	all := families(t, whole())
	controllers := families(t, metrics.New(metrics.Sources{Agent: agent}))
	agents := families(t, metrics.New(metrics.Sources{
		Controller: controller, Savings: savings, Steering: steering, Power: power, Plan: plan,
	}))
	tables := map[string]map[string]described{"both roles": {}, "the controller": {}, "the agent": {}}
	for name, f := range all {
		if kind := kindByName(name); f.kind != kind {
			t.Errorf("%s is a %s, by the page's rule on names a %s", name, f.kind, kind)
		}
		_, withoutController := controllers[name]
		_, withoutAgent := agents[name]
		switch {
		case name == "epplan_request_duration_seconds" || withoutController && withoutAgent:
			tables["both roles"][name] = f
		case withoutController:
			tables["the agent"][name] = f
		default:
			tables["the controller"][name] = f
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	want := table.ReplaceAllStringFunc(string(text), func(block string) string {
		part := table.FindStringSubmatch(block)
		of, known := tables[part[2]]
		if !known {
			t.Errorf("docs/metrics.md: metrics of %s, want one of both roles, the controller, the agent",
				part[2])
		}
		seen += len(of)
		return part[1] + rows(of) + part[3]
	})
	if seen != len(all) {
		t.Errorf("docs/metrics.md lists %d metrics of %d", seen, len(all))
	}
	if string(text) == want {
		return
	}
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Error("docs/metrics.md is out of date: go test ./internal/metrics -update rewrites its tables")
}

// read finds names of metrics, and of families of them such as epplan_plan_….
var read = regexp.MustCompile(`epplan_[a-z_]+…?`)

func TestEachMetricIsReadByAPanelARuleOrAPage(t *testing.T) {
	names := make(map[string]bool)
	for _, pattern := range []string{
		"../../packaging/grafana/*.json", "../../packaging/prometheus/*.rules.yml", "../../docs/*.md",
		"../../docs/*/*.md",
	} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if filepath.Base(file) == filepath.Base(page) {
				text = table.ReplaceAll(text, nil)
			}
			for _, name := range read.FindAllString(string(text), -1) {
				for _, suffix := range []string{"_bucket", "_count", "_sum"} {
					name = strings.TrimSuffix(name, suffix)
				}
				names[name] = true
			}
		}
	}
	for name := range families(t, whole()) {
		isRead := func(known string) bool {
			family, isFamily := strings.CutSuffix(known, "…")
			return known == name || isFamily && strings.HasPrefix(name, family)
		}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(names)), isRead) {
			t.Errorf("nobody reads %s: no panel, no alert and no page", name)
		}
	}
}
