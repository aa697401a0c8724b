package view

import (
	"fmt"
	"strconv"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
)

// worthText says what a saving comes to beside energy, by the factors that are stated.
func worthText(s *epdapi.Savings) string {
	best, of := s.Best()
	text := FootprintText(&s.Factors, best.SavedJ)
	if text == "" {
		return "unknown: the configuration states no constant [factors]"
	}
	text += fmt.Sprintf(", from %s of the %s with a PUE of %v", report.EnergyText(best.SavedJ), of,
		max(1, s.Factors.PUE))
	if s.Factors.Series {
		text += ", by constant factors, not by the hour"
	}
	if !best.IsCertain() {
		text += "; may be chance"
	}
	return text
}

// FootprintText returns what an energy costs, as far as factors are stated.
func FootprintText(f *epdapi.Factors, joules float64) string {
	return report.FootprintText(f.Config(), dvfsmodel.Joule(joules))
}

// statedShare returns a part that somebody configured, no more exact than it was stated.
func statedShare(x float64) string { return strconv.FormatFloat(100*x, 'g', 4, 64) + " %" }
