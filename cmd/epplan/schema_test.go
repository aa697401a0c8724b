package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/epplan/epplan/internal/testkit/apidoc"
)

// wantBySchema checks what a command printed against the schema that is shipped. Members that the schema doesn't
// describe are allowed by name only.
func wantBySchema(t *testing.T, command, stdout string, allowed ...string) {
	t.Helper()
	schema, err := os.ReadFile(filepath.Join("../../docs/reference", command+".schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	more, err := apidoc.Validate(schema, []byte(stdout))
	if err != nil {
		t.Errorf("%s: %v", command, err)
	}
	for _, name := range more {
		if !slices.Contains(allowed, name) {
			t.Errorf("%s: the schema doesn't describe %s", command, name)
		}
	}
}

// unpacked writes the files of a script into a folder, and returns the path of one of them.
func unpacked(t *testing.T, script, name string) string {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", "script", script+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range archive.Files {
		if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, name)
}

func TestEveryOutputInJSONIsAsItsSchemaSays(t *testing.T) {
	const demo = "../../testdata/demo/"
	onDemo := []string{"--cluster", demo + "cluster.toml", "--models", demo + "models.toml", demo + "batch.csv"}
	odd := filepath.Join(t.TempDir(), "odd.csv")
	rows := "id,gpus,nodes,runtime_s,deadline_s\nlate,1,1,100,1\nwide,4,2,100,\nhuge,999,,100,\n"
	if err := os.WriteFile(odd, []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	batches := [][]string{
		append([]string{"--policy", "baseline,park=never"}, onDemo...),
		append([]string{"--budget", "40kW"}, onDemo...),
		{
			"--config", filepath.Join(exampleSites, "ai-centre", "epplan.toml"), "--warnings", "all", "--policy",
			"edl", odd,
		},
		{
			"--config", unpacked(t, "hours", "site.toml"), "--models", demo + "models.toml", "--slack", "8h", "--at",
			"2026-11-30T16:00:00Z", "--effort", "0.1", demo + "batch.csv",
		},
		{"--cluster", "testdata/shared.toml", "--policy", "cats", "testdata/profiles.csv"},
	}
	for _, batch := range batches {
		_, stdout, stderr := inProcess(t, append([]string{"plan", "--json"}, batch...)...)
		if t.Log(batch); stdout == "" {
			t.Error(stderr)
			continue
		}
		wantBySchema(t, "plan", stdout)
	}
	_, saved, _ := inProcess(t, "savings", "--json", "--since", "30d")
	wantBySchema(t, "savings", saved)
	_, stdout, stderr := inProcess(t, append([]string{
		"compare", "--json", "--policy", "edl", "--policy", "edl,rho=1", "--policy", "easy",
	}, onDemo...)...)
	if stdout == "" {
		t.Error(stderr)
	}
	wantBySchema(t, "compare", stdout, "rho")
}
