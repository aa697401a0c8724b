package control

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/budget"
	"github.com/epplan/epplan/internal/configfiles"
	"github.com/epplan/epplan/internal/decide"
	"github.com/epplan/epplan/internal/factors"
	"github.com/epplan/epplan/internal/learn"
	"github.com/epplan/epplan/planner/sharing"
	"github.com/epplan/epplan/slurm"
)

// Settings are the part of a configuration that decisions depend on. They are
// never changed once in force: a reload puts others in their place.
type Settings struct {
	decide.Settings
	Factors  config.Factors
	Budget   config.Budget
	Predict  config.Predict
	Web      config.Web
	KeepDays int // of records; 0: for ever
	// DetailDays is for how many of them runs are kept in full detail; 0: all of them.
	DetailDays   int
	Warnings     []error // about what should be written otherwise in the file
	beside       func(*config.SlurmNames) []error
	series       *factors.Series // factors over time; nil: they are constant
	budgetSeries *budget.Series  // the cluster's budget over time; nil: it is constant
	curve        *sharing.Curve  // what it costs to share a GPU; nil: by load alone
	source       *config.Config  // that they were read from; nil: from none
	stamps       map[string]fileStamp
}

// NewSettings takes the settings from a configuration.
func NewSettings(c *config.Config, version string) *Settings {
	return &Settings{
		Settings: decide.NewSettings(c, version), Factors: c.Factors, Budget: c.Budget,
		Predict: c.Predict, Web: c.Web, KeepDays: c.Records.KeepDays, DetailDays: c.Records.DetailDays,
		Warnings: c.Warnings(), beside: c.UnknownNames,
	}
}

// maxConfig is more than config reads.
const maxConfig = 4<<20 + 2

// ReadSettings reads a configuration. Its version is the beginning of the
// text's SHA-256, so that equal files have equal versions.
func ReadSettings(r io.Reader, name string) (*Settings, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxConfig))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	c, err := config.Load(bytes.NewReader(text), name, nil)
	if err != nil {
		return nil, err
	}
	stamps := stampsOf(c)
	files, err := configfiles.Read(c)
	if err != nil {
		return nil, err
	}
	s := NewSettings(c, config.Digest(text))
	s.curve, s.source = files.Curve, c
	s.useSeries(files, stamps)
	return s, nil
}

// useSeries takes values over time from their files. Where clocks are chosen for money, and time has a price,
// they are faster in cheap hours and slower in dear ones.
func (s *Settings) useSeries(files *configfiles.Files, stamps map[string]fileStamp) {
	s.series, s.budgetSeries, s.stamps = files.Series, files.Budget, stamps
	s.EnergyWeight = nil
	if series, constant := s.series, s.Factors; series != nil && s.source.CountsCost() {
		s.EnergyWeight = func(from time.Time, seconds float64) float64 {
			long := time.Duration(min(seconds, longestRun) * float64(time.Second))
			factors := series.MeanFactors(from, long, &constant)
			return factors.Footprint(1).Cost
		}
	}
}

// DefaultSettings returns those without a configuration file: nothing is touched.
func DefaultSettings() *Settings { return NewSettings(config.Default(), "default") }

// warnings say what in the configuration is hardly meant, is over, or names what Slurm doesn't have, by its
// nodes.
func (s *Settings) warnings(now time.Time, nodes []slurm.Node) []error {
	all := slices.Clone(s.Warnings)
	if ended := s.seriesEnded(now); ended != nil {
		all = append(all, ended)
	}
	if s.beside != nil && len(nodes) > 0 {
		all = append(all, s.beside(config.NamesIn(nodes))...)
	}
	return all
}

// learning returns the settings that learning goes by.
func (s *Settings) learning() learn.Settings {
	return learn.Settings{
		TimeMargin: s.Live.TimeMargin, Explore: s.Live.Explore > 0, Caps: s.Live.Cap.IsChosenSomewhere(),
		MaxSlowdown: s.Live.MostSlowdown(),
		Sharing:     s.sharing(),
	}
}
