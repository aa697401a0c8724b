package decide

import (
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
)

// Settings are the part of a configuration that decisions depend on. They are
// never changed once in force: others take their place.
type Settings struct {
	Version  string // on every decision that was made by them
	Goal     config.Goal
	Safety   config.Safety
	Live     config.Live
	Profiles *config.Profiles
	// EnergyWeight returns what a joule weighs in the mean during a run that begins at a time and lasts so
	// many seconds, where that changes over time; nil: as in Goal, always.
	EnergyWeight func(from time.Time, seconds float64) float64
	hostW        map[string]dvfsmodel.Watt // by GPU model, of nodes that the configuration names
}

// NewSettings takes the settings from a configuration.
func NewSettings(c *config.Config, version string) Settings {
	s := Settings{
		Version: version, Goal: c.Goal(), Safety: c.Safety, Live: c.Live, Profiles: c.SiteProfiles(),
		hostW: make(map[string]dvfsmodel.Watt),
	}
	for _, class := range c.Cluster().Classes {
		s.hostW[s.ModelName(class.Model)] = class.HostW
	}
	return s
}

// ModelName returns the name of a GPU model's profile, or the name as it is.
func (s *Settings) ModelName(name string) string { return s.Profiles.NameOf(name) }

// IsModule reports whether what drivers count of GPUs of a model is the energy of modules:
// several GPUs, or a GPU with its CPU.
func (s *Settings) IsModule(model string) bool {
	return s.Profiles.Find(model).IsModule()
}

// HostPower returns the watts of the rest of a node for each of its GPUs.
func (s *Settings) HostPower(model string) dvfsmodel.Watt {
	if w, ok := s.hostW[model]; ok {
		return w
	}
	if p := s.Profiles.Find(model); p != nil {
		return p.HostW
	}
	return defaultHostW
}

// defaultHostW is the host power of GPU models that no profile names, as in
// config's documentation of host_w_per_gpu.
const defaultHostW dvfsmodel.Watt = 25
