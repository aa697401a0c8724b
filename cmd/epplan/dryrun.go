package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/cmd/internal/dryrun"
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
	var steps []string
	for _, part := range []struct {
		count int
		what  string
	}{
		{now.Nice, "the nice of %s"},
		{now.Prefer, "the preference of %s"},
		{now.Weights, "the weight of %s"},
		{now.Asleep, "the sleep of %s"},
	} {
		if part.count > 0 {
			noun := "job"
			if strings.Contains(part.what, "weight") || strings.Contains(part.what, "sleep") {
				noun = "node"
			}
			steps = append(steps, "take back "+fmt.Sprintf(part.what, plural(part.count, noun)))
		}
	}
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
