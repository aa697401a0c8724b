package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/setup"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/textfile"
	"github.com/epplan/epplan/lab/jsonfile"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/share"
	"github.com/epplan/epplan/planner/sharing"
)

func consolidateCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:      "consolidate",
		Usage:     "plan which tasks share which GPUs, at which clocks, and what sleeps",
		ArgsUsage: "FILE",
		Description: "FILE is an instance as JSON (lab/docs/consolidation.md) or a log of GPU utilisation as " +
			"CSV; - is standard input.\n" +
			"All tasks run together over one window. Without --policy the plan is the one of exact, which improves first\n" +
			"and then proves as much as the time limit allows; Ctrl-C prints the best so far. Problem safe counts what\n" +
			"sharing a GPU costs in time, as-printed (the CATS paper's) doesn't.\n" +
			"Where the plan breaks a limit it is printed, and the exit status is 3.\n" +
			"A log has the columns time_s, gpu or job, util_pct and mem_gb, or is of nvidia-smi --query-gpu=timestamp,index,\n" +
			"utilization.gpu,memory.used --format=csv. Its servers are those of --servers, or alike: as many as it takes.\n\n" +
			"Policies:\n" + methodList() +
			"\nExample: epplab consolidate consolidate.json --policy exact --json\n" +
			"Example: epplab consolidate utilisation.csv --gpus-per-server 4 --gpu-mem-gb 32 --server-w 200",
		Flags: []cli.Flag{
			&cli.StringFlag{
				Name: "policy", Aliases: []string{"p"}, Usage: "`POLICY`, see above", Value: exactMethod,
			},
			&cli.StringFlag{
				Name: "problem", Usage: "`PROBLEM`: safe or as-printed", Value: share.Safe.String(),
			},
			setup.SearchTimeFlag("the `TIME` that improve, exact and cats-safe may take", defaultSearchTime),
			setup.ContentionFlag("time is shared without loss"),
			setup.SeedFlag(),
			terminal.AtLeast(&cli.IntFlag{
				Name: "window", Usage: "`COUNT` of tasks that wait for each other; cats-safe knows them " +
					"all when it places the first of them", Value: 1,
			}, 1),
			terminal.JSONFlag(),
			terminal.RowsFlag("GPUs"), setup.SlotFlag("`TIME` that a slot of a log lasts"),
			&cli.Float64Flag{
				Name: "sla", Usage: "`FACTOR`: how many times its time alone a task of a log may take",
				Value: sharing.PaperSLA,
			},
			&cli.StringFlag{
				Name: "servers", DefaultText: "alike",
				Usage: "`FILE` with a log's servers: a cluster as TOML, or an instance as JSON, whose " +
					"clocks and watts count too",
			},
			terminal.Between(&cli.IntFlag{
				Name: "gpus-per-server", Usage: "`COUNT` of GPUs of servers that are alike",
				Value: defaultServerGPUs,
			}, 1, planner.MaxGPUs),
			&cli.Float64Flag{Name: "gpu-mem-gb", Usage: "`GB` of a GPU's memory", Value: defaultGPUMemGB},
			&cli.Float64Flag{
				Name: "server-w", Usage: "`WATTS` of a server that is on, beside its GPUs",
				Value: defaultServerW,
			},
			setup.ProfilesFlag(),
		},
		Action: t.Runs(terminal.WithArgs(1, 1, "one file", runConsolidate)),
	}
}

// defaultSearchTime is how long the search for a plan takes at most unless told
// otherwise.
const defaultSearchTime = time.Minute

// consolidation is a plan of the command and what it is worth.
type consolidation struct {
	instance *sharing.Instance
	method   *method
	problem  share.Problem
	placementResult
	verdict share.Evaluation
	window  int // of tasks that are placed at a time, where it was given; 0: one by one
}

func runConsolidate(t *terminal.Terminal, c *cli.Context) error {
	r := &consolidation{}
	var err error
	if r.method, err = methodByName(c.String("policy")); err != nil {
		return err
	}
	if r.problem, err = problemByName(c.String("problem")); err != nil {
		return err
	}
	if err := checkWindow(c, r); err != nil {
		return err
	}
	if r.instance, err = readInstance(t, c, c.Args().First()); err != nil {
		return err
	}
	if err := fittedContention(t, c, r); err != nil {
		return err
	}
	r.solve(c.Context, t, c.Duration("time-limit"), c.Uint64("seed"))
	if c.Bool("json") {
		err = t.Print(func(w io.Writer) error { return report.WriteJSON(w, r.json(), "") })
	} else {
		err = t.PrintText(r.text(t.TextOptions(c.Int("rows"))))
	}
	if err != nil {
		return err
	}
	if err := c.Err(); err != nil { // what was printed is the best so far
		return err
	}
	if !r.verdict.FeasibleFor(r.problem) {
		return &terminal.InfeasibleError{Msg: "the plan isn't feasible: " + r.violations()}
	}
	return nil
}

func problemByName(name string) (share.Problem, error) {
	for _, p := range []share.Problem{share.Safe, share.AsPrinted} {
		if p.String() == name {
			return p, nil
		}
	}
	return 0, terminal.Usagef("--problem %q, want safe or as-printed", name)
}

// checkWindow takes over how many tasks wait for each other.
func checkWindow(c *cli.Context, r *consolidation) error {
	if !c.IsSet("window") {
		return nil
	}
	if r.window = c.Int("window"); r.method.name != windowMethod {
		return terminal.Usagef(
			"--window is for --policy %s, %s makes nothing of tasks that wait: want it left out",
			windowMethod,
			r.method.name,
		)
	}
	return nil
}

func methodByName(name string) (*method, error) {
	all := methods()
	i := slices.IndexFunc(all, func(m method) bool { return m.name == name })
	if i < 0 {
		names := terminal.TextsOf(all, func(m method) string { return m.name })
		return nil, terminal.Usagef("--policy %q, want one of %s", name, strings.Join(names, ", "))
	}
	return &all[i], nil
}

func methodList() string {
	var b strings.Builder
	for _, m := range methods() {
		fmt.Fprintf(&b, "  %-18s %s\n", m.name, m.about)
	}
	return b.String()
}

// utilisationFlags are those that only a log has a use for.
var utilisationFlags = []string{
	"slot",
	"sla",
	"servers",
	"gpus-per-server",
	"gpu-mem-gb",
	"server-w",
} //nolint:gochecknoglobals // constant

// readInstance returns what a file says, an instance or a log: the first character
// tells which.
func readInstance(t *terminal.Terminal, c *cli.Context, name string) (*sharing.Instance, error) {
	return terminal.ParseFile(t, name, func(r io.Reader, name string) (*sharing.Instance, error) {
		text := textfile.Open(r, name, textfile.OnlyText)
		if _, err := text.Peek(1); errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s: is empty, want an instance as JSON or a log as CSV", name)
		}
		if first := textfile.FirstByte(text); first != '{' && first != '[' {
			return readLogInstance(t, c, text, name)
		}
		why := "is for logs, but " + name + " is an instance, want it left out"
		if err := terminal.Refuse(c, why, utilisationFlags...); err != nil {
			return nil, err
		}
		return jsonfile.ReadInstance(text, name)
	})
}
