package policy

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/reference/policies.md anew")

const page = "../../docs/reference/policies.md"

// stageDocs say what the values of a stage's key do.
var stageDocs = map[string]map[string]string{
	"clocks": {
		"default": "default clocks for every job",
		"learned": "for each GPU model the pair at which the earlier jobs would have cost least; default " +
			"clocks if a job would exceed its limit or deadline at these",
		"optimum": "the clocks with the least energy that keep limit and deadline",
		"adapted": "on shared GPUs: lowered as long as every task keeps its tolerated slowdown " +
			"(CATS algorithm 4)",
		"lowest": "on shared GPUs: the lowest clock at which every task keeps its tolerated slowdown",
		"cheapest": "on shared GPUs: the clock with the least energy at which every task keeps its tolerated " +
			"slowdown",
	},
	"pick": {
		"fcfs": "in order of arrival",
		"edf":  "the earliest deadline first",
		"deadline-first": "tasks that must run faster than at their optimum first, then by deadline " +
			"(EDL definition 1)",
		"lpt":             "the longest first",
		"largest":         "the most GPUs first, after tasks that have waited for a day",
		"simple":          "as policy simple",
		"simple-backfill": "as policy simple-backfill",
		"easy":            "as policy easy",
		"greedy":          "as policy greedy",
		"value":           "as policy value",
		"posted-price":    "as policy posted-price",
		"lookahead":       "as policy lookahead",
	},
	"place": {
		"at-once":   "on GPUs that are free now",
		"lightest":  "on the GPU that becomes free first, or a new one (EDL algorithm 2)",
		"first-fit": "on the first GPU with room in time",
		"best-fit":  "on the GPU with the least sufficient room",
		"worst-fit": "on the GPU with the most room",
		"soonest":   "where the job can start soonest",
		"latest":    "on the GPU that becomes free last and still in time",
	},
	"park": {
		"drs":        "a node switches off after rho slots, or seconds, without a job (EDL)",
		"never":      "all nodes stay on, also in the plans used for comparison",
		"periodic":   "idle nodes sleep at the end of a period (CATS algorithm 3)",
		"break-even": "a node sleeps when that saves energy, judged by past gaps between jobs",
	},
}

// constantDoc describes policy constant.
const constantDoc = "\n## Constant clocks\n\n" +
	"`constant` answers an administrator's first question: how much would one clock for all save, set by " +
	"`nvidia-smi -lgc` on every node? It\nchooses one clock pair for each GPU model, by coordinate descent over all supported pairs. " +
	"It starts from the default pairs and from the\ncheapest ones for the jobs. At each step it places the jobs by `marginal`, " +
	"`baseline`, `edl` and `easy` (larger batches by fewer of them).\nIf some are late, it tries again with earlier due " +
	"times. It keeps the plan with the fewest unplanned jobs, then the fewest missed deadlines, " +
	"then the\nfewest past due, then the least objective, and looks for better places at those clocks. No job gets faster clocks for its limit or\n" +
	"deadline. Jobs without a model, and those on a part of a GPU, stay at default clocks.\n\n" +
	"Jobs that arrive over time are placed as they come, but the pairs are chosen in hindsight. A site that can't know future " +
	"jobs can have\n`easy,clocks=learned`: EASY at the pairs at which the jobs submitted so far would have cost least. Every " +
	"plan is compared with `constant`\n([what choosing for each job " +
	"adds](../how-to/compare-policies.md#what-choosing-for-each-job-adds)). `clocks=default` keeps the default pairs;\n`pick` " +
	"and `place` fix how jobs are placed. As an order of Slurm's queue, `constant` is first come, first served.\n"

// pageText returns the page as the registry has it.
//
//nolint:lll // a page as it is
func pageText() string {
	var b strings.Builder
	b.WriteString(`# Policies

<!-- Written by go test ./planner/policy -update. -->

A policy chooses the next job, its place, its clocks, and the nodes that sleep. Write it as

` + "```text\nNAME[:THETA][,KEY=VALUE]…\n```" + `

on the command line (` + "`--policy`" + `) and in the [configuration](config.md#policy). ` +
		"`edl:0.9,pick=value,park=never`" + ` is EDL with θ 0.9,
which picks the next job like policy value and leaves nodes on. A placement is a policy too. [The papers](../../lab/docs/papers.md) explain them.

` + "```sh\nepplan compare batch.csv --cluster cluster.toml --models models.toml --policy " +
		"edl:0.9,pick=edf,park=never --policy potential,clocks=default\n```" + `

## Policies by name

| policy | what it does |
|---|---|
`)
	for _, name := range Names() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, Describe(name))
	}
	b.WriteString(constantDoc)
	b.WriteString("\n## Placements\n\nEach task goes to the node with the best score, in order of " +
		"due time and at optimal clocks. `epplab replay` compares them.\n\n| placement | what it does |\n|---|---|\n")
	for _, name := range PlacementNames() {
		usage, doc := DescribePlacement(name)
		fmt.Fprintf(&b, "| `%s` | %s |\n", strings.ReplaceAll(usage, "|", `\|`), doc)
	}
	b.WriteString("\n## Stages\n\n`KEY=VALUE` replaces a stage of a policy. epplan refuses a value that " +
		"changes nothing, and names the policies that take it.\n`edl-align` starts from the plans of several policies, " +
		"so it takes only `clocks=default` and `park=never`. Clocks of shared GPUs\nneed a policy that shares GPUs.\n\n| key | value | what it does |\n|---|---|---|\n")
	for _, key := range slices.Sorted(maps.Keys(stages)) {
		for _, value := range sortedKeys(stages[key]) {
			fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", key, value, stageDocs[key][value])
		}
	}
	b.WriteString("| `place` | a placement | by its score; a task without room waits |\n")
	var rest []string
	for _, name := range PlaceNames() {
		if _, named := stages["place"][name]; !named {
			rest = append(rest, "`"+name+"`")
		}
	}
	fmt.Fprintf(&b, "\nFurther values of `place`: %s; share-… puts jobs with profiles together on GPUs by "+
		"that rule of\n[consolidation](../../lab/docs/consolidation.md).\n", strings.Join(rest, ", "))
	b.WriteString("\n## Numbers\n\nKeys with a number: `theta` and `rho` as `--theta` and `--rho`; " +
		"`stretch`, how many times its time at default clocks a job may take; `pace` of `replan`, how many times EASY's\n" +
		"mean turnaround jobs without a deadline may take; and those of\n" +
		"policies for [queues](../../lab/docs/cli.md#epplab-plan): ")
	keys := numberKeys()
	for i := range keys {
		keys[i] = "`" + keys[i] + "`"
	}
	b.WriteString(strings.Join(keys, ", ") + ".\n")
	b.WriteString("\nPolicies take a number if one of their stages uses it:\n\n| number | used " +
		"by |\n|---|---|\n| `theta` | `place=lightest` with `clocks=optimum`, as `edl` has |\n")
	for _, key := range append([]string{"stretch", "rho"}, numberKeys()...) {
		by := "`" + strings.Join(acceptingStages(key), "`, `") + "`"
		if key == "spread" {
			by += "; with `patience` by all stages that take it"
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", key, by)
	}
	return b.String()
}

func TestThePageOfPoliciesIsWhatTheRegistryHas(t *testing.T) {
	for key, values := range stages {
		for value := range values {
			if stageDocs[key][value] == "" {
				t.Errorf("%s=%s has no words for the page", key, value)
			}
		}
		for value := range stageDocs[key] {
			if values[value].change == nil {
				t.Errorf("the page has %s=%s, the registry not", key, value)
			}
		}
	}
	want := pageText()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/reference/policies.md is out of date: go test ./planner/policy -update writes it")
	}
}
