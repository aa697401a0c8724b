package main

import (
	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
)

func importCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:        "import",
		Usage:       "import logs of jobs",
		Description: "Example: epplan import sacct sacct.txt --out imported.csv",
		Subcommands: []*cli.Command{importSacctCommand(t), importSWFCommand(t)},
	}
}
