package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/cmd/internal/completion"
	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/planner/policy"
)

func completionCommand(t *terminal) *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a shell completion script",
		ArgsUsage: "bash|zsh|fish",
		Description: "Source what is printed from the shell's start-up file: . epplan.bash\n" +
			"Example: epplan completion bash > epplan.bash",
		Action: t.runs(takes(1, 1, "a shell: bash, zsh or fish", runCompletion)),
	}
}

func runCompletion(t *terminal, c *cli.Context) error {
	script := completion.Script(c.Args().First(), "epplan")
	if script == "" {
		return usagef("unknown shell %q, want bash, zsh or fish", c.Args().First())
	}
	return t.printText(script)
}

// completionValues are the values of flags and arguments that have a few.
func completionValues() completion.Values {
	words := func(words ...string) func() []string { return func() []string { return words } }
	models := func() []string { return config.BuiltinProfiles().Names() }
	policies := func() []string { return slices.Concat(policy.Names(), policy.PlacementNames()) }
	return completion.Values{
		"completion":                completion.Shells,
		"gpus":                      models,
		"plan --policy":             policies,
		"explain --policy":          policies,
		"compare --policy":          policies,
		"tune --policy":             policies,
		"replay --policy":           policy.PlacementNames,
		"replay --base":             policy.PlacementNames,
		"--gpu-model":               models,
		"plan --format":             words("auto", "csv", "json", "edl", "knapsack"),
		"explain --format":          words("auto", "csv", "json", "edl"),
		"compare --format":          words("auto", "csv", "json", "edl"),
		"generate --format":         words("edl", "csv", "json"),
		"replay --format":           words("openb", "sacct", "jobs"),
		"replay --pick":             words("fcfs", "largest"),
		"--range":                   words("wide", "narrow"),
		"--start":                   words("slot", "continuous"),
		"--energy-model":            words("independent", "coupled"),
		"consolidate --problem":     words("safe", "as-printed"),
		"tune --objective":          words("energy", "wait", "both"),
		"model optimum --objective": words("energy", "edp", "ed2p", "time"),
		"model fit --form":          words("best", "paper"),
		"predict --target":          words("time", "energy", "power"),
		"predict --probe":           words("linear", "mlp"),
		"reproduce edl --only":      words("single", "table3", "offline", "online"),
		"reproduce pwr --only":      words("power", "savings", "grar"),
		"reproduce predict --only":  words("table1", "table2", "figure4", "power"),
		"reproduce cats --only":     words("testbed", "table1", "table2", "pai", "philly"),
		"jobs --state": words("PENDING", "RUNNING", "COMPLETED", "FAILED", "CANCELLED",
			"TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE",
			"LAUNCH_FAILED"),
	}
}
