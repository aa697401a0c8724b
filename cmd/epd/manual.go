package main

import (
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/completion"
	"github.com/epplan/epplan/internal/cli/manual"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store"
)

// manCommand writes the manual.
func manCommand(stdout, stderr io.Writer) *cli.Command {
	return &cli.Command{
		Name: "man", Usage: "write the manual pages of all commands", UsageText: "epd man FOLDER",
		HideHelpCommand: true,
		Description: "Pages go to FOLDER/man8. Their date is today's, or what SOURCE_DATE_EPOCH says.\n" +
			"Example: epd man manual",
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return usagef("epd man takes a folder, got %d arguments", c.NArg())
			}
			book, err := manualBook(application(stdout, stderr))
			if err != nil {
				return err
			}
			return book.Write(c.Args().First())
		},
	}
}

// manualBook returns what all pages have in common.
func manualBook(app *cli.App) (*manual.Book, error) {
	date, err := manual.Date(os.Getenv("SOURCE_DATE_EPOCH"), time.Now())
	if err != nil {
		return nil, err
	}
	return &manual.Book{
		App: app, Section: 8, Date: date, Version: version,
		ExitStatus: []manual.Entry{
			{Term: "0", Text: "Done, or told to end"},
			{Term: "1", Text: "Failed; what was locked was given back as far as the driver let it"},
			{Term: "2", Text: "The command line is wrong"},
			{Term: "4", Text: "Nobody answers at epd's socket"},
		},
		Files: []manual.File{
			{
				Entry: manual.Entry{Term: "/etc/epplan/config.toml", Text: "The configuration, for --config"},
				Flags: []string{"config"},
			},
			{Entry: manual.Entry{
				Term: "/etc/default/epd, epd-agent, epd-controller",
				Text: "EPD_OPTIONS, the flags with which systemd starts epd",
			}},
			{
				Entry: manual.Entry{
					Term: "/var/lib/epplan",
					Text: "The state of an agent, or of an epd that is both: journal, open runs, outcomes " +
						"to deliver, records",
				}, Flags: []string{"state", "journal"},
			},
			{
				Entry: manual.Entry{
					Term: "/var/lib/epplan-controller",
					Text: "The state of a controller, as its unit has it: records, levers",
				}, Flags: []string{"state"},
			},
			{
				Entry: manual.Entry{
					Term: epdapi.AgentSocket, Text: "Where an agent answers hooks and administrators",
				}, Flags: []string{"socket"},
			},
			{
				Entry: manual.Entry{
					Term: epdapi.ControllerSocket, Text: "Where a controller answers administrators",
				}, Flags: []string{"socket"},
			},
			{
				Entry: manual.Entry{
					Term: epdapi.PublicSocket, Text: "Where a controller answers users and job_submit.lua",
				}, Flags: []string{"submit-socket"},
			},
		},
		SeeAlso: []string{"epplan(1)"},
	}, nil
}

// completionCommand prints what makes a shell complete epd's command lines.
func completionCommand(stdout io.Writer) *cli.Command {
	return &cli.Command{
		Name: "completion", Usage: "print a shell completion script",
		UsageText: "epd completion bash|zsh|fish", HideHelpCommand: true,
		Description: "Example: epd completion bash > epd.bash",
		Action: func(c *cli.Context) error {
			script := completion.Script(c.Args().First(), "epd")
			if c.NArg() != 1 || script == "" {
				return usagef("epd completion takes a shell: bash, zsh or fish")
			}
			_, err := io.WriteString(stdout, script)
			return err
		},
	}
}

// completionValues returns the values of flags and arguments that have a few.
func completionValues() completion.Values {
	words := func(words ...string) func() []string { return func() []string { return words } }
	return completion.Values{
		"completion": completion.Shells,
		"--role":     words(roleBoth, roleController, roleAgent),
		"--slurm":    words("auto", "on", "off"),
		"--gpu":      words("auto", "nvml", "amd", "sim"),
		"db export":  store.Tables,
	}
}
