package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/setup"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/lab/taskset"
	"github.com/epplan/epplan/lab/trace"
	"github.com/epplan/epplan/queue"
)

func generateCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:  "generate",
		Usage: "generate a random task set like the EDL paper's",
		Description: "Tasks repeat the applications of the paper's library; their deadlines follow from a random\n" +
			"utilisation. The same seed gives the same set.\n" +
			"Example: epplab generate --offline 0.4 --online 1.6 --seed 7 > tasks.csv",
		Flags: []cli.Flag{
			&cli.Float64Flag{Name: "offline", Usage: "`UTILISATION` by the tasks that are there at slot 0"},
			&cli.Float64Flag{Name: "online", Usage: "`UTILISATION` by the tasks that arrive over the day"},
			&cli.IntFlag{Name: "slots", Usage: "`COUNT` of slots in the day", Value: taskset.SlotsPerDay},
			&cli.IntFlag{
				Name: "pairs", Usage: "`COUNT` of CPU-GPU pairs that a utilisation of 1 keeps busy",
				Value: taskset.ReferencePairs,
			},
			setup.SeedFlag(),
			&cli.StringFlag{
				Name: "format", Usage: "`FORMAT` of the task set: edl, csv or json", Value: "edl",
			},
			terminal.OutputFlag(),
		},
		Action:      t.Runs(terminal.WithoutArgs(runGenerate)),
		Subcommands: []*cli.Command{generateOpenbCommand(t)},
	}
}

func generateOpenbCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:      "openb",
		Usage:     "generate a cluster and a list of tasks like those of Alibaba's openb trace",
		ArgsUsage: "FOLDER",
		Description: "Writes nodes.csv and pods.csv into FOLDER, in the format of that trace. Kinds of " +
			"nodes, sizes of tasks and\n" +
			"the times when they are there are distributed like the trace's. The same seed gives the same files.\n" +
			"Example: epplab generate openb --nodes 100 --seed 1 demo",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "nodes", Usage: "`COUNT` of nodes", Value: taskset.OpenbNodes},
			&cli.IntFlag{
				Name: "tasks", DefaultText: "as many for each node as the trace has",
				Usage: "`COUNT` of tasks",
			},
			setup.SeedFlag(),
		},
		Action: t.Runs(terminal.WithArgs(1, 1, "one folder to write to", runGenerateOpenb)),
	}
}

func runGenerateOpenb(t *terminal.Terminal, c *cli.Context) error {
	spec, seed := taskset.OpenbSpec{Nodes: c.Int("nodes"), Tasks: c.Int("tasks")}, c.Uint64("seed")
	if spec.Nodes < 1 || (c.IsSet("tasks") && spec.Tasks < 1) {
		return terminal.Usagef("--nodes %d and --tasks %d, want 1 or more of each", spec.Nodes, spec.Tasks)
	}
	o, err := taskset.GenerateOpenb(spec, rand.New(rand.NewPCG(seed, seed)))
	if err != nil {
		return &terminal.UsageError{Msg: err.Error()}
	}
	dir := c.Args().First()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write %s: %w", dir, terminal.WithoutPath(err))
	}
	if err := t.Write(filepath.Join(dir, "nodes.csv"),
		func(w io.Writer) error { return trace.WriteNodes(w, o.Nodes) }); err != nil {
		return err
	}
	if err := t.Write(filepath.Join(dir, "pods.csv"),
		func(w io.Writer) error { return trace.WritePods(w, o.Pods) }); err != nil {
		return err
	}
	t.Notef("%d nodes and %d tasks in %s, seed %d", len(o.Nodes), len(o.Pods), dir, seed)
	return nil
}

func runGenerate(t *terminal.Terminal, c *cli.Context) error {
	writers := map[string]func(io.Writer, *queue.Batch) error{
		"edl": queue.WriteEDL, "csv": queue.WriteCSV, "json": queue.WriteJSON,
	}
	write, ok := writers[c.String("format")]
	if !ok {
		return terminal.Usagef("unknown format %q, want edl, csv or json", c.String("format"))
	}
	spec := taskset.Spec{
		Offline: c.Float64("offline"), Online: c.Float64("online"), Slots: c.Int("slots"),
		Pairs: c.Int("pairs"),
	}
	if spec.Slots < 1 || spec.Pairs < 1 {
		return terminal.Usagef("--slots %d and --pairs %d, want 1 or more of each", spec.Slots, spec.Pairs)
	}
	seed := c.Uint64("seed")
	batch, err := taskset.Generate(spec, rand.New(rand.NewPCG(seed, seed)))
	if err != nil {
		return &terminal.UsageError{Msg: err.Error(), Hint: "for example --offline 0.4 --online 1.6"}
	}
	if err := t.Write(c.String("out"), func(w io.Writer) error { return write(w, batch) }); err != nil {
		return err
	}
	t.Notef("%d tasks, seed %d", len(batch.Jobs), seed)
	return nil
}
