package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/dryrun"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"

	"github.com/epplan/epplan/internal/cli/terminal"
)

func dryRunUndo(c *cli.Context) (stop bool, err error) {
	if !dryrun.IsSet(c) {
		return false, nil
	}
	now, err := ask(c, controllerFirst, (*epdapi.Client).Levers)
	if err != nil {
		return true, err
	}
	all := terminal.Present(terminal.Count(now.Nice, "nice of "+report.Plural(now.Nice, "job")),
		terminal.Count(now.Prefer, "preference of "+report.Plural(now.Prefer, "job")),
		terminal.Count(now.Weights, "weight of "+report.Plural(now.Weights, "node")),
		terminal.Count(now.Asleep, "sleep of "+report.Plural(now.Asleep, "node")))
	steps := terminal.TextsOf(all, func(part terminal.Counted) string { return "take back the " + part.What })
	return dryrun.Announce(c, steps...)
}

func dryRunReload(c *cli.Context) (stop bool, err error) {
	if !dryrun.IsSet(c) {
		return false, nil
	}
	s, err := ask(c, controllerFirst, (*epdapi.Client).Status)
	if err != nil {
		return true, err
	}
	file, version := "its configuration", "none"
	if s.Health != nil && s.Health.Config != "" {
		file = s.Health.Config
	}
	if s.Controller != nil {
		version = s.Controller.ConfigVersion
	}
	return dryrun.Announce(c, fmt.Sprintf("have epd read %s again, now %s is in force", file, version))
}
