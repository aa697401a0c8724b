package main

import (
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/cmd/internal/manual"
	"github.com/epplan/epplan/internal/epdapi"
)

// manCommand writes the pages of a program, made anew so that it has the flags of its
// definition alone.
func manCommand(t *terminal, program func(*terminal) *cli.App) *cli.Command {
	return &cli.Command{
		Name:      "man",
		Usage:     "write the manual pages of all commands",
		ArgsUsage: "FOLDER",
		Description: "Pages go to FOLDER/man1; man finds them where FOLDER is in MANPATH. Packages bring them along.\n" +
			"Their date is today's, or what SOURCE_DATE_EPOCH says.\n" +
			"Example: epplan man manual",
		Action: t.runs(takes(1, 1, "a folder", func(t *terminal, c *cli.Context) error {
			book, err := newManualBook(program(t))
			if err != nil {
				return err
			}
			if err := book.Write(c.Args().First()); err != nil {
				return err
			}
			t.message("note", "wrote the pages; man -M "+c.Args().First()+" epplan-plan shows one")
			return nil
		})),
	}
}

// newManualBook is what all pages have in common.
func newManualBook(app *cli.App) (*manual.Book, error) {
	date, err := manual.Date(os.Getenv("SOURCE_DATE_EPOCH"), time.Now())
	if err != nil {
		return nil, err
	}
	return &manual.Book{
		App: app, Section: 1, Date: date, Version: version,
		ExitStatus: []manual.Entry{
			{Term: "0", Text: "Done"},
			{Term: "1", Text: "Failed: an input is wrong, a file can't be read or written"},
			{Term: "2", Text: "The command line is wrong"},
			{Term: "3", Text: "The plan was printed, but some jobs can't be planned or end late"},
			{Term: "4", Text: "Nobody answers at epd's socket"},
			{Term: "130", Text: "Interrupted; what was being written was left as it was"},
		},
		Files: []manual.File{
			{
				Entry: manual.Entry{
					Term: "/etc/epplan/config.toml",
					Text: "The configuration, as packages install it; epplan config init writes one " +
						"with the defaults",
				}, Flags: []string{"config"},
			},
			{
				Entry: manual.Entry{Term: epdapi.AgentSocket, Text: "Where the epd of a node answers"},
				Flags: []string{"socket"},
			},
			{
				Entry: manual.Entry{
					Term: epdapi.ControllerSocket, Text: "Where the controller answers administrators",
				}, Flags: []string{"socket"},
			},
			{
				Entry: manual.Entry{Term: epdapi.PublicSocket, Text: "Where the controller answers users " +
					"and job_submit.lua"}, Flags: []string{"socket", "submit-socket"},
			},
			{
				Entry: manual.Entry{
					Term: "/var/lib/epplan/journal",
					Text: "Which clocks are locked, for giving them back when epd doesn't run",
				}, Flags: []string{"journal"},
			},
		},
		SeeAlso: []string{"epd(8)"},
	}, nil
}
