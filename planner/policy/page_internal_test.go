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
		"optimum": "the clocks of the least energy that keep limit and deadline",
		"adapted": "on GPUs that tasks share: stepped down as long as everybody keeps what they tolerate " +
			"(CATS algorithm 4)",
		"lowest":   "there: the lowest clock at which everybody does",
		"cheapest": "there: the clock of the least energy at which everybody does",
	},
	"pick": {
		"fcfs": "in order of arrival",
		"edf":  "the earliest deadline first",
		"deadline-first": "those that have to be faster than they want first, then by deadline " +
			"(EDL definition 1)",
		"lpt": "the longest first",
		"largest": "the one with the most GPUs first, and nobody waits for more than a " +
			"day because of it",
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
		"lightest":  "on the GPU that is free first, or a new one (EDL algorithm 2)",
		"first-fit": "on the first GPU with room in time",
		"best-fit":  "on the GPU with the least room that will do",
		"worst-fit": "on the GPU with the most room",
		"soonest":   "where the job can start soonest",
		"latest":    "on the GPU that is free last and still in time",
	},
	"park": {
		"drs":        "a node goes off after rho slots, or seconds, without a job (EDL)",
		"never":      "all nodes stay on; such plans are held against others whose nodes stay on, too",
		"periodic":   "what has no job at the end of a period sleeps (CATS algorithm 3)",
		"break-even": "a node sleeps after as long as pays, by the gaps that were seen",
	},
}

// constantDoc says what policy constant is.
const constantDoc = "\n## Constant clocks\n\n`constant` answers what an administrator asks first: what " +
	"would one clock for all do, set by `nvidia-smi -lgc` on every node? It has one clock\n" +
	"pair for each GPU model, out of all that the GPU model supports and the default one. Pairs are chosen " +
	"by coordinate descent, from the default\n" +
	"ones and from those that would cost the jobs least: along one GPU model's pairs after the other, " +
	"those left out that a faster pair beats in\n" +
	"energy. At each choice jobs are placed by `marginal`, `baseline`, `edl` and `easy`, the larger " +
	"batches by fewer of them; where some are late, again\n" +
	"with those due earlier. Of all these plans it keeps the one that leaves out the fewest jobs, then " +
	"ends the fewest past their due times,\n" +
	"then misses the fewest deadlines, then has the least objective, and looks for better places at those " +
	"clocks. No job gets faster clocks because its\n" +
	"limit or deadline asks for them: then the pair loses. Jobs without a model, and those on a part of a " +
	"GPU, stay at default clocks.\n\n" +
	"Jobs that arrive over time are placed as they come, but the pairs are chosen with all of them known: " +
	"by hindsight, the best that one could\n" +
	"have set. It is there to hold other plans against, and stands beside each ([what choosing for each " +
	"job adds](../how-to/compare-policies.md#what-choosing-for-each-job-adds)).\n" +
	"`clocks=default` leaves the default pairs, `pick` and `place` have jobs placed in that one way. An " +
	"order of Slurm's queue by `constant` is first come, first served.\n"

// pageText returns the page as the registry has it.
//
//nolint:lll // a page as it is
func pageText() string {
	var b strings.Builder
	b.WriteString(`# Policies

<!-- Written by go test ./planner/policy -update. -->

A policy says which job is next, where it runs, at which clocks, and which node sleeps. It is written

` + "```text\nNAME[:THETA][,KEY=VALUE]…\n```" + `

on the command line (` + "`--policy`" + `) and in the [configuration](config.md#policy). ` +
		"`edl:0.9,pick=value,park=never`" + ` is EDL with θ 0.9, whose next
job is that of policy value, and whose nodes stay on. A placement is a policy too. [The papers](../../lab/docs/papers.md) say what stands behind them.

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
	b.WriteString("\n## Placements\n\nWhere a task goes, by a score of each node; jobs are taken by " +
		"earliest due time, at their optimal clocks. `epplab replay` compares them.\n\n| placement | what it does |\n|---|---|\n")
	for _, name := range PlacementNames() {
		usage, doc := DescribePlacement(name)
		fmt.Fprintf(&b, "| `%s` | %s |\n", strings.ReplaceAll(usage, "|", `\|`), doc)
	}
	b.WriteString("\n## Stages\n\n`KEY=VALUE` exchanges a stage of a policy. What would change nothing is " +
		"refused, with a word on what takes it: `edl-align` starts from the\n" +
		"plans of several policies, so that of its stages only `clocks` can be exchanged, by `default`, and `park`, by `never`; " +
		"clocks of shared GPUs are for policies that share them.\n\n| key | value | what it does |\n|---|---|---|\n")
	for _, key := range slices.Sorted(maps.Keys(stages)) {
		for _, value := range sortedKeys(stages[key]) {
			fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", key, value, stageDocs[key][value])
		}
	}
	b.WriteString("| `place` | a placement | by its score; a task that has no room waits |\n")
	var rest []string
	for _, name := range PlaceNames() {
		if _, named := stages["place"][name]; !named {
			rest = append(rest, "`"+name+"`")
		}
	}
	fmt.Fprintf(&b, "\nFurther values of `place`: %s; those that begin with share- put jobs with profiles "+
		"on GPUs together by that rule of\n[consolidation](../../lab/docs/consolidation.md).\n", strings.Join(rest, ", "))
	b.WriteString("\n## Numbers\n\nKeys with a number: `theta` and `rho` as `--theta` and `--rho`; " +
		"`stretch`, how many times its time at default clocks a job may take; `pace` of `replan`, how many times EASY's\n" +
		"mean turnaround jobs without a deadline may take; and those of\n" +
		"policies for [queues](../../lab/docs/cli.md#epplab-plan): ")
	keys := numberKeys()
	for i := range keys {
		keys[i] = "`" + keys[i] + "`"
	}
	b.WriteString(strings.Join(keys, ", ") + ".\n")
	b.WriteString("\nA number is taken by policies with a stage that asks for it:\n\n| number | asked for " +
		"by |\n|---|---|\n| `theta` | `place=lightest` with `clocks=optimum`, as `edl` has |\n")
	for _, key := range append([]string{"stretch", "rho"}, numberKeys()...) {
		by := "`" + strings.Join(acceptingStages(key), "`, `") + "`"
		if key == "spread" {
			by += "; beside `patience` by all that take that"
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
