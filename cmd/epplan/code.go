package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/follow"
	"github.com/epplan/epplan/internal/predict/source"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/view"
	"github.com/epplan/epplan/slurm"

	"github.com/epplan/epplan/internal/cli/terminal"
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

// writeForecast is what a job is expected to take.
func writeForecast(b *strings.Builder, f *epdapi.Forecast, factors *epdapi.Factors) {
	if f == nil {
		return
	}
	report.WriteRow(b, "Expected", "%s (%s to %s), by %s", report.FormatSeconds(f.Time.Value),
		report.FormatSeconds(f.Time.Low), report.FormatSeconds(f.Time.High), view.RungText(f.Time.Rung))
	energy := report.FormatJoules[float64]
	report.WriteRow(b, "  energy", "%s (%s to %s) of its GPUs, by %s", energy(f.Energy.Value),
		energy(f.Energy.Low), energy(f.Energy.High), view.RungText(f.Energy.Rung))
	watts := report.FormatWatts[float64]
	report.WriteRow(b, "  power", "%s (%s to %s) of a GPU, by %s", watts(f.Power.Value), watts(f.Power.Low),
		watts(f.Power.High), view.RungText(f.Power.Rung))
	if text := forecastFootprint(f, factors); text != "" {
		report.WriteRow(b, "  costs", "%s", text)
	}
	if f.Strange {
		report.WriteRow(b, "  strange", "it is unlike all that was learnt from (%.1f times as far as usual)",
			f.Score)
	}
}

// forecastFootprint returns what a forecast comes to, by factors over time or by constant ones.
func forecastFootprint(f *epdapi.Forecast, factors *epdapi.Factors) string {
	if p := f.Footprint; p != nil {
		var parts []string
		for _, one := range []struct {
			of   *epdapi.PredictedRange
			unit string
		}{{&p.Cost, p.Currency}, {&p.Carbon, "g of CO2"}, {&p.Water, "l of water"}} {
			if one.of.High > 0 {
				parts = append(parts,
					fmt.Sprintf("%.2f %s (%.2f to %.2f)", one.of.Value, one.unit, one.of.Low, one.of.High))
			}
		}
		return strings.Join(parts, ", ")
	}
	at := func(j float64) string { return view.FootprintText(factors, j) }
	text := at(f.Energy.Value)
	if text == "" {
		return ""
	}
	return fmt.Sprintf("%s (%s to %s)", text, at(f.Energy.Low), at(f.Energy.High))
}
