package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/epdapi"
)

func reloadCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:  "reload",
		Usage: "have epd read its configuration again",
		Description: "Says which version is in force then. A configuration that is wrong changes nothing; each fault is named\n" +
			"with file and line, and the exit status is 1. Decisions already made stay.\n" +
			"Example: epplan reload",
		Flags:  []cli.Flag{anySocketFlag(controllerFirst), terminal.JSONFlag(), terminal.DryRunFlag()},
		Action: t.Runs(terminal.WithoutArgs(runReload)),
	}
}

func runReload(t *terminal.Terminal, c *cli.Context) error {
	if stop, err := dryRunReload(c); stop {
		return err
	}
	answer, err := ask(c, controllerFirst,
		func(epd *epdapi.Client, ctx context.Context) (*epdapi.ReloadAnswer, error) {
			return epd.Reload(ctx)
		})
	if wrong, ok := errors.AsType[*epdapi.RefusedError](err); ok && len(wrong.Fault.Faults) > 0 {
		faults := strings.Join(terminal.TextsOf(wrong.Fault.Faults, terminal.Printable), "\n")
		return terminal.WithHint(errors.New(faults),
			"nothing has changed: the configuration that was in force stays")
	}
	switch {
	case err != nil:
		return err
	case c.Bool("json"):
		return t.PrintJSON(answer)
	}
	t.Warn(answer.WarningErrors())
	return t.PrintText(terminal.Printable(answer.Words()) + "\n")
}

func hasStatus(err error, status int) bool {
	refused, ok := errors.AsType[*epdapi.RefusedError](err)
	return ok && refused.Status == status && status != http.StatusOK
}

func dryRunReload(c *cli.Context) (stop bool, err error) {
	if !terminal.IsDryRun(c) {
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
	return terminal.Announce(c, fmt.Sprintf("have epd read %s again, now %s is in force", file, version))
}
