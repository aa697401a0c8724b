package manual_test

import (
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/manual"
)

func testBook() *manual.Book {
	return &manual.Book{
		App: &cli.App{
			Name: "tool", Usage: "does things", UsageText: "tool COMMAND",
			Description: "Two lines\nof one thought.\nAnother.\nExit status: 0.\n\nExample: tool do x",
			Commands: []*cli.Command{
				{Name: "hide", Hidden: true},
				{
					Name: "do", Usage: "θ first", UsageText: "tool do FILE [OPTIONS]",
					Description: ".it begins with a dot\n  a \\table\n  'of two lines'\nEnd.\n" +
						"Example: tool do 'x-y'",
					Flags: []cli.Flag{
						&cli.StringFlag{
							Name: "journal", Aliases: []string{"j"}, Usage: "`DIR` of it", Value: "/a-b",
							EnvVars: []string{"TOOL_JOURNAL"},
						},
						&cli.BoolFlag{Name: "quiet", Usage: "say nothing"},
						&cli.IntFlag{Name: "secret", Hidden: true},
					},
				},
			},
		},
		Section: 8, Date: time.Unix(0, 0).UTC(), Version: "1-2",
		Files: []manual.File{
			{Entry: manual.Entry{Term: "/j", Text: "Journals"}, Flags: []string{"journal"}},
			{Entry: manual.Entry{Term: "/all", Text: "All"}},
		},
	}
}

func TestAPageHasEverySectionOfItsCommand(t *testing.T) {
	pages := testBook().Pages()
	if len(pages) != 2 {
		t.Fatalf("%d pages, want two", len(pages))
	}
	for name, parts := range map[string][]string{
		"tool.8": {
			`.TH TOOL 8 1970-01-01 "epplan 1\-2" "epplan manual"`, ".SH NAME\ntool \\- does things\n",
			".SH SYNOPSIS\n\\fBtool\\fR \\fICOMMAND\\fR\n",
			"Two lines\nof one thought.\n.PP\nAnother.\n.SH COMMANDS\n.TP\n.BR tool\\-do (8)\nΘ first.\n",
			".SH FILES\n.TP\n\\fB/j\\fR\nJournals.\n.TP\n\\fB/all\\fR\nAll.\n",
			".SH EXAMPLES\n.EX\ntool do x\n.EE\n",
		},
		"tool-do.8": {
			".SH DESCRIPTION\n\\&.it begins with a dot\n.PP\n.nf\n  a \\etable\n  \\(aqof two lines\\(aq\n" +
				".fi\n.PP\nEnd.\n",
			"\\fB\\-\\-journal\\fR \\fIDIR\\fR, \\fB\\-j\\fR\nDIR of it. Default: /a\\-b.\n.TP\n" +
				"\\fB\\-\\-quiet\\fR\nSay nothing.\n.TP\n\\fB\\-\\-help",
			".SH ENVIRONMENT\n.TP\n\\fBTOOL_JOURNAL\\fR\n",
			".SH FILES\n.TP\n\\fB/j\\fR\nJournals.\n.SH EXAMPLES\n.EX\ntool do \\(aqx\\-y\\(aq\n.EE\n",
			".SH \"SEE ALSO\"\n.BR tool (8)\n",
		},
	} {
		for _, part := range parts {
			if !strings.Contains(pages[name], part) {
				t.Errorf("%s has no\n%s\nbut is\n%s", name, part, pages[name])
			}
		}
	}
}

func TestPagesAreFromWhenTheSourceIs(t *testing.T) {
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	if got, err := manual.Date("86400", now); err != nil || got != time.Unix(86400, 0).UTC() {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := manual.Date("", now); err != nil || got != now {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := manual.Date("now", now); err == nil {
		t.Error("now is taken for seconds")
	}
}
