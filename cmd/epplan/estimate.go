package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/follow"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/view"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

func estimateCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:      "estimate",
		Usage:     "what a submission would take and cost",
		ArgsUsage: "SCRIPT",
		Description: "SCRIPT is what sbatch would be given, - is standard input. #SBATCH lines are read; flags given here\n" +
			"override them. What is known on each GPU model comes from earlier runs of the very same script on as many\n" +
			"GPUs. Other expectations come from similar jobs and from the source code that the script runs, such as\n" +
			"python train.py below this folder: epd receives only numeric features, from which the source can't be\n" +
			"recovered. Nothing is submitted, and nothing is kept of the script.\n" +
			"Example: epplan estimate job.sh --time 2:00:00",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "gpus", Aliases: []string{"G"}, Usage: "`COUNT` of GPUs, as sbatch has it"},
			&cli.StringFlag{Name: "gres", Usage: "`LIST` of resources for each node, such as gpu:2"},
			&cli.StringFlag{Name: "gpus-per-node", Usage: "`COUNT` of GPUs of each node"},
			&cli.StringFlag{Name: "gpus-per-task", Usage: "`COUNT` of GPUs of each task"},
			&cli.StringFlag{Name: "nodes", Aliases: []string{"N"}, Usage: "`COUNT` of nodes"},
			&cli.StringFlag{Name: "ntasks", Aliases: []string{"n"}, Usage: "`COUNT` of tasks"},
			&cli.StringFlag{Name: "time", Aliases: []string{"t"}, Usage: "time `LIMIT`"},
			&cli.StringFlag{Name: "partition", Aliases: []string{"p"}, Usage: "`NAME` of the partition"},
			&cli.StringFlag{Name: "job-name", Aliases: []string{"J"}, Usage: "`NAME` of the job"},
			&cli.StringFlag{
				Name:  "comment",
				Usage: "`TEXT` with requests, such as epplan:off, epplan:deadline=18:00 or epplan:slowdown=1.05",
			},
			&cli.StringFlag{
				Name: "gpu-model", Usage: "this GPU `MODEL` only", DefaultText: "all that it ran on",
			},
			noCodeFlag(), anySocketFlag(publicFirst), terminal.JSONFlag(),
		},
		Action: t.Runs(terminal.WithArgs(1, 1, "one batch script", runEstimate)),
	}
}

func runEstimate(t *terminal.Terminal, c *cli.Context) error {
	script, err := readScript(t, c.Args().First())
	if err != nil {
		return err
	}
	s, err := readSubmission(t, c, script)
	if err != nil {
		return err
	}
	read := followCode(t, c, s, chdirOf(script))
	request := &epdapi.CodeRequest{Submission: *s, Code: epdCode(read)}
	e, err := ask(c, publicFirst, func(epd *epdapi.Client, ctx context.Context) (*epdapi.Estimate, error) {
		e, err := epd.Estimate(ctx, request, c.String("gpu-model"))
		if err == nil && e.WantsText && request.Code != nil {
			request.Code = withCodeText(request.Code, read)
			_, err = epd.Announce(ctx, request)
		}
		return e, err
	})
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return t.PrintJSON(struct {
			*epdapi.Estimate
			Code *codeFiles `json:"code"` // null: none was looked at
		}{e, codeFilesOf(read)})
	}
	var b strings.Builder
	if s.Array != "" {
		b.WriteString("For each task of the array:\n")
	}
	writeEstimate(&b, e, read)
	return t.PrintText(b.String())
}

// readScript reads as much of a batch script as Slurm's hooks are given.
func readScript(t *terminal.Terminal, name string) ([]byte, error) {
	return terminal.ParseFile(t, name, func(r io.Reader, _ string) ([]byte, error) {
		return io.ReadAll(io.LimitReader(r, hooks.SentScript))
	})
}

// chdirOf returns the folder that a script asks to be run in; "" is the one where it is
// submitted.
func chdirOf(script []byte) string {
	for _, o := range hooks.SbatchOptions(string(script)) {
		if o.Name == "chdir" {
			return o.Value
		}
	}
	return ""
}

// readSubmission returns what sbatch would submit, as far as it matters.
func readSubmission(t *terminal.Terminal, c *cli.Context, script []byte) (*hooks.Submission, error) {
	name := c.Args().First()
	s := &hooks.Submission{
		Version: hooks.ProtocolVersion, Kind: "batch", UID: uint32(max(0, os.Getuid())),
		Script: hooks.Hex(script),
	}
	switch {
	case len(script) == 0:
		return nil, fmt.Errorf("%s: is empty, want a batch script", name)
	case !bytes.HasPrefix(script, []byte("#!")):
		t.Message("warning", name+" doesn't begin with #!: sbatch refuses it")
	case bytes.IndexByte(script, 0) >= 0 || bytes.Contains(script, []byte("\r\n")):
		t.Message("warning", name+" has zero bytes or line ends of DOS: sbatch refuses it")
	}
	perNode := uint32(0)
	for _, o := range hooks.SbatchOptions(string(script)) {
		if o.Name == "ntasks-per-node" {
			perNode = tasksPerNode(o.Value)
		}
		if err := s.SetOption(o.Name, o.Value); err != nil {
			return nil, terminal.WithHint(fmt.Errorf("%s:%d: %w", name, o.Line, err),
				"sbatch would refuse it, too")
		}
	}
	for _, flag := range []string{
		"gpus", "gres", "gpus-per-node", "gpus-per-task", "nodes", "ntasks", "time",
		"partition", "job-name", "comment",
	} {
		if !c.IsSet(flag) {
			continue
		}
		if err := s.SetOption(flag, c.String(flag)); err != nil {
			return nil, &terminal.UsageError{Msg: err.Error()}
		}
	}
	if s.Name == "" && name != "-" {
		s.Name = hooks.Hex(filepath.Base(name)) // as sbatch names it
	}
	if s.NumTasks == 0 && perNode > 0 {
		s.NumTasks = perNode * min(max(1, s.MinNodes), math.MaxUint16)
	}
	return s, nil
}

// tasksPerNode returns how many tasks a node has; 0: not stated.
func tasksPerNode(text string) uint32 {
	var s hooks.Submission
	if s.SetOption("ntasks", text) != nil {
		return 0
	}
	return min(s.NumTasks, math.MaxUint16)
}

func writeEstimate(b *strings.Builder, e *epdapi.Estimate, read *follow.Sources) {
	size := report.Plural(e.GPUs, "GPU")
	if e.Shared {
		size = "a part of a GPU"
	}
	report.WriteRow(b, "Workload", "%s, %s", terminal.OrDash(e.Workload), size)
	b.WriteString(view.Wishes(e.Wishes).Text())
	writeCode(b, read)
	if expected := view.Forecast(e.Forecast, &e.Factors); expected != nil {
		b.WriteString(expected[:1].Text("") + expected[1:].Text("  "))
	}
	if !e.Known {
		report.WriteRow(b, "Not known", "%s", slurm.Printable(e.Reason, 400))
		b.WriteString("It would run at default clocks; what it takes is known once it ran.\n")
		return
	}
	what := "of the same script"
	if !e.Scripted {
		what = "of the same name"
	}
	report.WriteRow(b, "Known from", "runs %s on as many GPUs, by the same user", what)
	if !e.Limited {
		report.WriteRow(b, "Time limit", "not known here: the partition's may call for faster clocks")
	}
	for i := range e.Models {
		writeEstimateModel(b, e, &e.Models[i])
	}
}

func writeEstimateModel(b *strings.Builder, e *epdapi.Estimate, m *epdapi.EstimateModel) {
	fmt.Fprintf(b, "\nOn %s\n", terminal.OrDash(m.GPUModel))
	if m.Model == nil || m.Default == nil || m.Chosen == nil {
		report.WriteRow(b, "  why", "%s", slurm.Printable(m.Reason, 400))
		return
	}
	b.WriteString(view.Points(m.Model, m.GPUModel, m.Default, m.Chosen).Text("  "))
	report.WriteRow(b, "  why", "%s", slurm.Printable(m.Reason, 400))
	if m.Apply && e.HoldOut > 0 {
		report.WriteRow(b, "", "%s of the jobs run at default clocks all the same, at random",
			report.FormatPercent(e.HoldOut))
	}
	if m.Apply && e.ConstantArm > 0 {
		report.WriteRow(b, "",
			"%s of the jobs run at constant clocks instead, at random, on GPU models that have such",
			report.FormatPercent(e.ConstantArm))
	}
	writeCost(b, e, m)
}

func writeCost(b *strings.Builder, e *epdapi.Estimate, m *epdapi.EstimateModel) {
	cost := func(p *epdapi.Point) string {
		text := report.EnergyText(p.EnergyJ + p.HostJ)
		if more := view.FootprintText(&e.Factors, p.EnergyJ+p.HostJ); more != "" {
			text += ", " + more
		}
		return text
	}
	text := cost(m.Default)
	if m.Chosen.Core != m.Default.Core || m.Chosen.Mem != m.Default.Mem {
		text += "; at chosen clocks " + cost(m.Chosen)
	}
	report.WriteRow(b, "  costs", "%s, with its share of the node", text)
}
