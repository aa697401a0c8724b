package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/siteprogram"
	"github.com/epplan/epplan/slurm"
)

// Slurm starts a SuspendProgram or ResumeProgram with a hostlist, as its own
// user, and waits for neither; what the nodes do tells it whether they came.
const (
	nodePowerTimeout   = time.Minute            // of a node, unless --each says otherwise
	powerNotifyTimeout = 500 * time.Millisecond // of telling epd
)

func powerCommand(t *terminal.Terminal, name, usage string) *cli.Command {
	return &cli.Command{
		Name:      name,
		Usage:     usage,
		ArgsUsage: "HOSTLIST",
		Description: "Prints the nodes of a hostlist, one a line, runs a program for each with the node's name as its only\n" +
			"argument, several side by side, and tells epd. A node that fails or takes too long doesn't affect the\n" +
			"others. Exit status 1: a node failed; Slurm logs that, and judges nodes by whether they come and go.\n" +
			"Example: epplan " + name + " 'gpu[01-03]' --run /bin/true",
		Flags: []cli.Flag{
			&cli.StringFlag{
				Name: "run", Usage: "absolute `PATH` of the program that switches one node",
				DefaultText: "none: nodes are printed",
			},
			&cli.DurationFlag{
				Name: "each", Usage: "`TIME` after which a node's program is ended", Value: nodePowerTimeout,
			},
			&cli.StringFlag{
				Name: "socket", Usage: "`PATH` of the controller's socket", Value: defaultSubmitSocket,
				EnvVars: []string{"EPPLAN_SUBMIT_SOCKET"},
			},
			terminal.DryRunFlag(),
		},
		Action: t.Runs(terminal.WithArgs(1, 1, "a hostlist such as gpu[01-03]", runPower)),
	}
}

func runPower(t *terminal.Terminal, c *cli.Context) error {
	what := c.Command.Name
	nodes, err := slurm.ExpandHostlist(c.Args().First())
	if err != nil {
		return err
	}
	if len(nodes) == 0 {
		return terminal.Usagef("%q names no node", c.Args().First())
	}
	for _, node := range nodes {
		if err := slurm.ValidNode(node); err != nil {
			return err
		}
	}
	program := c.String("run")
	if program != "" && !filepath.IsAbs(program) {
		return terminal.Usagef("--run is %q, want an absolute path", program)
	}
	if c.Duration("each") <= 0 {
		return terminal.Usagef("--each is %v, want more than 0", c.Duration("each"))
	}
	if stop, err := terminal.Announce(c, powerSteps(what, program, nodes)...); stop {
		return err
	}
	if err := t.PrintText(strings.Join(nodes, "\n") + "\n"); err != nil {
		return err
	}
	news := epdapi.PowerEvent{Action: what, Nodes: nodes}
	if program != "" {
		news.Failed = siteprogram.RunOnNodes(c.Context, program, nodes, c.Duration("each"))
	}
	reportPower(t, c, &news)
	for _, node := range nodes {
		if why, failed := news.Failed[node]; failed {
			t.Message("warning", node+": "+why)
		}
	}
	if len(news.Failed) > 0 {
		return fmt.Errorf("%s: %d of %d nodes failed", what, len(news.Failed), len(nodes))
	}
	return nil
}

func powerSteps(what, program string, nodes []string) []string {
	var steps []string
	for _, node := range nodes {
		if program != "" {
			steps = append(steps, "run "+program+" "+node)
		}
	}
	return append(steps, "tell epd of the "+what+" of "+strings.Join(nodes, ", "))
}

// reportPower tells epd; one that isn't there is no reason to leave nodes on.
func reportPower(t *terminal.Terminal, c *cli.Context, news *epdapi.PowerEvent) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context), powerNotifyTimeout)
	defer cancel()
	if err := epdapi.New(c.String("socket")).Power(ctx, news); err != nil {
		t.Message("warning", "epd isn't told: "+err.Error())
	}
}
