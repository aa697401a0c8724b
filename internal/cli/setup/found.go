package setup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
)

// ConfigVariable is the environment variable that names the default configuration.
const ConfigVariable = "EPPLAN_CONFIG"

// useFoundConfig sets --config if neither it nor --cluster is given: to the file of [ConfigVariable], or to
// the first file that exists in this folder, the user's folder or the site's. It notes which file it is.
func useFoundConfig(t *terminal.Terminal, c *cli.Context) error {
	takes := slices.ContainsFunc(c.Command.Flags, func(f cli.Flag) bool { return f.Names()[0] == "config" })
	if !takes || c.IsSet("config") || c.IsSet("cluster") || c.Bool("from-slurm") {
		return nil
	}
	name, why := configHere()
	if name == "" {
		return nil
	}
	t.Notef("configuration %s, %s: --config names another", terminal.Printable(name), why)
	if err := c.Set("config", name); err != nil {
		return fmt.Errorf("configuration %s: %w", terminal.Printable(name), err)
	}
	return nil
}

// configHere returns the file of [ConfigVariable], or the first that exists, and which of both it is; or "".
func configHere() (name, why string) {
	if name := os.Getenv(ConfigVariable); name != "" {
		return name, "of $" + ConfigVariable
	}
	return foundConfig(), "found"
}

// foundConfig returns the first configuration file that exists and may be read, or "".
func foundConfig() string {
	places := []string{"epplan.toml"}
	if dir, err := os.UserConfigDir(); err == nil {
		places = append(places, filepath.Join(dir, "epplan", "epplan.toml"))
	}
	for _, name := range append(places, "/etc/epplan/config.toml") {
		if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if f, err := os.Open(name); err == nil { // the site's may be for root alone
			_ = f.Close()
			return name
		}
	}
	return ""
}
