// Command epplab is the laboratory of epplan: it computes the papers' figures anew, generates and replays
// traces, tunes policies, and tries rules of sharing. No site needs it. Run epplab --help for its commands,
// or read lab/docs.
package main

import (
	"context"
	"os"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/completion"
	"github.com/epplan/epplan/internal/cli/manual"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/lab/jobarray"
	"github.com/epplan/epplan/planner/policy"
)

// version is set by the linker in make build.
var version = "devel"

func main() {
	ctx := terminal.UntilSignalled(context.Background(), os.Interrupt, syscall.SIGTERM)
	os.Exit(newProgram().Run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr))
}

func newProgram() *terminal.Program {
	return &terminal.Program{
		Name:  "epplab",
		Usage: "reproduce papers, generate and replay traces, tune policies",
		Description: "epplab help COMMAND tells more. Results go to standard output, everything else to standard error.\n" +
			"Exit status: 0 done, 1 failed, 2 usage, 3 some jobs can't be planned in time, 130 interrupted.\n\n" +
			"Example: epplab reproduce edl --only table3",
		Version:    version,
		Commands:   commands,
		Values:     completionValues(),
		BareValues: map[string]string{jobarray.ArrayFlag: "0"},
		Pages: manual.Book{
			ExitStatus: []manual.Entry{
				{Term: "0", Text: "Done"},
				{Term: "1", Text: "Failed: an input is wrong, a file can't be read or written"},
				{Term: "2", Text: "The command line is wrong"},
				{Term: "3", Text: "The plan was printed, but some jobs can't be planned or end late"},
				{Term: "130", Text: "Interrupted; what was being written was left as it was"},
			},
			SeeAlso: []string{"epplan(1)"},
		},
	}
}

func commands(t *terminal.Terminal) []*cli.Command {
	return []*cli.Command{
		reproduceCommand(t),
		generateCommand(t),
		traceCommand(t),
		replayTraceCommand(t),
		planQueueCommand(t),
		tuneCommand(t),
		consolidateCommand(t),
		correlateCommand(t),
		fitContentionCommand(t),
		profileLogCommand(t),
		predictCodeCommand(t),
	}
}

// completionValues returns the values of flags and arguments that have a few.
func completionValues() completion.Values {
	words := func(words ...string) func() []string { return func() []string { return words } }
	return completion.Values{
		"completion":               completion.Shells,
		"plan --policy":            policy.Names,
		"tune --policy":            policy.Names,
		"replay --policy":          policy.PlacementNames,
		"replay --base":            policy.PlacementNames,
		"generate --format":        words("edl", "csv", "json"),
		"replay --pick":            words("fcfs", "largest"),
		"--energy-model":           words("independent", "coupled"),
		"consolidate --problem":    words("safe", "as-printed"),
		"tune --objective":         words("energy", "wait", "both"),
		"predict --target":         words("time", "energy"),
		"predict --probe":          words("linear", "mlp"),
		"reproduce edl --only":     words("single", "table3", "offline", "online"),
		"reproduce pwr --only":     words("power", "savings", "grar"),
		"reproduce predict --only": words("table1", "table2", "figure4", "power"),
		"reproduce cats --only":    words("testbed", "table1", "table2", "pai", "philly"),
	}
}
