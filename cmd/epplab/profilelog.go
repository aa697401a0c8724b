package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/lab/profilelog"
	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
)

func profileLogCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:      "profile-log",
		Usage:     "write profiles of workloads as a log that consolidate and correlate read",
		ArgsUsage: "PROFILES.json",
		Description: "PROFILES.json is what epplan profile --json prints; - is standard input.\n" +
			"Example: epplab profile-log profiles.json -o profiles.log.csv",
		Flags:  []cli.Flag{terminal.OutputFlag()},
		Action: t.Runs(terminal.WithArgs(1, 1, "one file", writeProfileLog)),
	}
}

// writeProfileLog writes profiles as a log of utilisation.
func writeProfileLog(t *terminal.Terminal, c *cli.Context) error {
	read, err := terminal.ParseFile(
		t,
		c.Args().First(),
		func(r io.Reader, name string) (*epdapi.ProfileList, error) {
			p := &epdapi.ProfileList{}
			if err := json.NewDecoder(r).Decode(p); err != nil {
				return nil, fmt.Errorf("%s: not what epplan profile --json prints: %w", name, err)
			}
			return p, nil
		},
	)
	if err != nil {
		return err
	}
	list := read.Profiles
	known := profilelog.Known(list)
	if known == 0 {
		return terminal.WithHint(
			fmt.Errorf("none of %s is known, want one that is", report.Plural(len(list), "workload")),
			"epplan profile says what is missing",
		)
	}
	if err := t.Write(c.String("out"),
		func(w io.Writer) error { return profilelog.Write(w, list) }); err != nil {
		return err
	}
	t.Message("note", report.Plural(known, "workload")+" written, as if each had run once, from time 0 on")
	if unknown := len(list) - known; unknown > 0 {
		t.Message("note",
			report.Plural(unknown, "workload that isn't", "workloads that aren't")+" known left out")
	}
	return nil
}
