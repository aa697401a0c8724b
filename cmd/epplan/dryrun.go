package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/dryrun"
	"github.com/epplan/epplan/internal/epdapi"
)

func dryRunUndo(c *cli.Context) (stop bool, err error) {
	if !dryrun.IsSet(c) {
		return false, nil
	}
	now, err := ask(c, controllerFirst, (*epdapi.Client).Levers)
	if err != nil {
		return true, err
	}
	all := present(
		counted{now.Nice, "nice of " + plural(now.Nice, "job")},
		counted{now.Prefer, "preference of " + plural(now.Prefer, "job")},
		counted{now.Weights, "weight of " + plural(now.Weights, "node")},
		counted{now.Asleep, "sleep of " + plural(now.Asleep, "node")},
	)
	steps := textsOf(all, func(part counted) string { return "take back the " + part.what })
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
