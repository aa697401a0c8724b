package main

import (
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/follow"
	"github.com/epplan/epplan/internal/predict/source"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// noCodeFlag keeps source code from being looked at.
func noCodeFlag() cli.Flag {
	return &cli.BoolFlag{
		Name:  "no-code",
		Usage: "look at no source code, tell only of the script (as epplan:nocode in --comment does)",
	}
}

// maxCodeText is how much text of a job's code is sent where an embedding server wants
// it, in bytes.
const maxCodeText = 64 << 10

// followCode reads the source files that a script runs, below the working folder; nil
// where the user doesn't want that, or there is no folder.
func followCode(t *terminal.Terminal, c *cli.Context, s *hooks.Submission, chdir string) *follow.Sources {
	wishes := slurm.ParseWishes(string(s.Comment), time.Now())
	if c.Bool("no-code") || wishes.NoCode {
		return nil
	}
	root, err := os.OpenRoot(".")
	if err != nil {
		t.Message("warning", "no source code is looked at: "+terminal.WithoutPath(err).Error())
		return nil
	}
	defer func() { _ = root.Close() }() // only read
	return follow.Script(root, string(s.Script), chdir)
}

// epdCode returns what epd is told of source code; nil: nothing.
func epdCode(read *follow.Sources) *epdapi.Code {
	if read == nil {
		return nil
	}
	embedding := source.Embed(source.Read(read.Text))
	code := &epdapi.Code{
		Files: len(read.Files) + 1, Vector: make([]float32, len(embedding)),
		Digest: hooks.Hex(read.Digest[:]),
	}
	for i, x := range embedding {
		code.Vector[i] = float32(x)
	}
	return code
}

// withCodeText returns a code with the text that an embedding server is sent.
func withCodeText(code *epdapi.Code, read *follow.Sources) *epdapi.Code {
	more := *code
	more.Text = hooks.Hex(read.Text[:min(len(read.Text), maxCodeText)])
	return &more
}

// codeFiles says which source code was looked at.
type codeFiles struct {
	Files   []string         `json:"files"`
	Skipped []follow.Skipped `json:"skipped"`
}

// codeFilesOf is for JSON; nil: none was looked at.
func codeFilesOf(read *follow.Sources) *codeFiles {
	if read == nil {
		return nil
	}
	return &codeFiles{append([]string{}, read.Files...), append([]follow.Skipped{}, read.Skipped...)}
}

func writeCode(b *strings.Builder, read *follow.Sources) {
	if read == nil {
		return
	}
	if len(read.Files) > 0 {
		report.WriteRow(b, "Code", "%s", terminal.Printable(strings.Join(read.Files, ", ")))
	}
	for _, s := range read.Skipped {
		report.WriteRow(b, "Left out", "%s %s", terminal.Printable(s.Name), terminal.Printable(s.Why))
	}
}
