package config

import (
	"strings"
	"testing"
)

func seeds(f *testing.F) {
	f.Helper()
	for _, text := range []string{
		DefaultText(), siteConfig, builtinProfiles, modelsText, "", "[policy]\ntheta = 2",
		"[[cluster.nodes]]",
	} {
		f.Add(text)
	}
}

// FuzzLoad also checks that what was loaded can be shown and loaded again.
func FuzzLoad(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Load(strings.NewReader(text), "f.toml", nil)
		if err != nil {
			return
		}
		var out strings.Builder
		if err := c.Show(&out); err != nil {
			t.Fatal(err)
		}
		if again, err := Load(strings.NewReader(out.String()), "f.toml", nil); err != nil ||
			!sameConfig(c, again) {
			t.Errorf("shown configuration loads as %+v, %v:\n%s", again, err, out.String())
		}
		cluster := c.Cluster()
		if err := cluster.Validate(); err != nil {
			t.Errorf("cluster: %v", err)
		}
		if err := c.Goal().Objective.Validate(); err != nil {
			t.Errorf("objective: %v", err)
		}
	})
}

// FuzzReadProfiles also checks that each profile that was read has a table.
func FuzzReadProfiles(f *testing.F) {
	seeds(f)
	f.Add(gpuTable)
	f.Fuzz(func(t *testing.T, text string) {
		profiles, err := ReadProfiles(strings.NewReader(text), "f.toml")
		if err != nil {
			return
		}
		for _, name := range profiles.Names() {
			p, err := profiles.Lookup(name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Table(); err != nil && len(p.Clocks) > 0 {
				t.Error(err)
			}
		}
	})
}

// FuzzReadModels also checks that what was read can be written and read again.
func FuzzReadModels(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text string) {
		models, err := ReadModels(strings.NewReader(text), "f.toml")
		if err != nil {
			return
		}
		var out strings.Builder
		if err := WriteModels(&out, models); err != nil {
			t.Fatal(err)
		}
		if again, err := ReadModels(strings.NewReader(out.String()), "f.toml"); err != nil ||
			!sameModels(models, again) {
			t.Errorf("written models read as %+v, %v:\n%s", again, err, out.String())
		}
	})
}
