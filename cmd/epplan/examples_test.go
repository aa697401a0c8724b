package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/factors"
	"github.com/epplan/epplan/internal/testkit/commandtest"
	"github.com/epplan/epplan/slurm"
)

const exampleSites = "../../examples"

// sites returns the folders of examples that have a configuration.
func sites(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(exampleSites, "*", "epplan.toml"))
	if err != nil || len(names) != 3 {
		t.Fatalf("%d sites, want three: %v", len(names), err)
	}
	for i := range names {
		names[i] = filepath.Dir(names[i])
	}
	return names
}

func TestEachSiteOfTheExamplesHasARightConfigurationAndABatchThatCanBePlanned(t *testing.T) {
	for _, site := range sites(t) {
		toml := filepath.Join(site, "epplan.toml")
		if code, _, stderr := inProcess(t, "config", "check", toml); code != terminal.ExitDone ||
			strings.Contains(stderr, "warning") {
			t.Errorf("%s: exit status %d: %s", toml, code, stderr)
		}
		args := []string{
			"plan", filepath.Join(site, "batch.csv"), "--config", toml, "--models",
			filepath.Join(exampleSites, "models.toml"), "--json",
		}
		if _, err := os.Stat(filepath.Join(site, "grid.csv")); err == nil {
			args = append(args, "--at", "2026-06-01T00:00Z")
		}
		code, stdout, stderr := inProcess(t, args...)
		if code != terminal.ExitDone || stderr != "" {
			t.Errorf("%s: exit status %d: %s", site, code, stderr)
			continue
		}
		var plan struct {
			Status string  `json:"status"`
			Saving float64 `json:"saving"`
			Misses int     `json:"misses"`
		}
		if err := json.Unmarshal([]byte(stdout), &plan); err != nil {
			t.Fatal(err)
		}
		wantBySchema(t, "plan", stdout)
		if plan.Status != "complete" || plan.Misses != 0 || plan.Saving < 0.05 {
			t.Errorf("%s: %+v, want a complete plan that saves something", site, plan)
		}
	}
}

func TestFactorsOfTheExamplesCoverADay(t *testing.T) {
	series, err := factors.ReadFile(filepath.Join(exampleSites, "ai-centre", "grid.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if series == nil {
		t.Error("no factors")
	}
}

// wishLine is the comment that a script asks for.
var wishLine = regexp.MustCompile(`(?m)^#SBATCH --comment="([^"]*)"$`)

func TestJobScriptsOfTheExamplesStateEveryWishAndNoneThatIsWrong(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(exampleSites, "jobs", "*.sh"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%d scripts: %v", len(names), err)
	}
	now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	var off, noCode, fixed, deadline, none int
	for _, name := range names {
		text := commandtest.ReadPage(t, name)
		if out, err := exec.CommandContext(t.Context(), "sh", "-n", name).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
		found := wishLine.FindStringSubmatch(text)
		if found == nil {
			none++
			continue
		}
		w := slurm.ParseWishes(found[1], now)
		if len(w.Warnings) > 0 {
			t.Errorf("%s: %v", name, w.Warnings)
		}
		for _, c := range []struct {
			n  *int
			is bool
		}{
			{&off, w.Off},
			{&noCode, w.NoCode},
			{&fixed, w.HasFixedClocks()},
			{&deadline, !w.Deadline.IsZero()},
		} {
			if c.is {
				*c.n++
			}
		}
	}
	if counts := []int{off, noCode, fixed, deadline}; slices.Min(counts) == 0 || none == 0 {
		t.Errorf("scripts that wish off, nocode, fixed, deadline: %v, and %d that wish nothing: want "+
			"one of each", counts, none)
	}
}

func TestThePageOfExamplesNamesEveryFile(t *testing.T) {
	page := commandtest.ReadPage(t, filepath.Join(exampleSites, "README.md"))
	entries, err := os.ReadDir(filepath.Join(exampleSites, "jobs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.Contains(page, "(jobs/"+e.Name()+")") {
			t.Errorf("examples/README.md doesn't name jobs/%s", e.Name())
		}
	}
	for _, site := range sites(t) {
		if !strings.Contains(page, "("+filepath.Base(site)+"/epplan.toml)") {
			t.Errorf("examples/README.md doesn't name %s", site)
		}
	}
}
