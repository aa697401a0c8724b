package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

func hasDryRun(f cli.Flag) bool { return slices.Contains(f.Names(), "dry-run") }

func TestEveryCommandThatTouchesSomethingHasADryRun(t *testing.T) {
	app := application(io.Discard, io.Discard)
	found := map[string]bool{"epd": slices.ContainsFunc(app.Flags, hasDryRun)}
	for _, c := range app.Commands {
		found["epd "+c.Name] = slices.ContainsFunc(c.Flags, hasDryRun)
		for _, sub := range c.Subcommands {
			found["epd "+c.Name+" "+sub.Name] = slices.ContainsFunc(sub.Flags, hasDryRun)
		}
	}
	touching := []string{
		"epd", "epd agent", "epd controller", "epd restore", "epd model use", "epd db forget",
		"epd db remember", "epd db restore",
	}
	for name, has := range found {
		if touches := slices.Contains(touching, name); touches != has {
			t.Errorf("%s: touches Slurm or GPUs %v, has --dry-run %v", name, touches, has)
		}
	}
	if len(found) < len(touching) {
		t.Errorf("only %v", found)
	}
}

func TestADryRunSaysWhatEPDWouldDoAndDoesNothing(t *testing.T) { //nolint:funlen // most of it is a table
	dir := t.TempDir()
	state, config, socket := filepath.Join(dir, "state"), filepath.Join(dir, "config.toml"),
		filepath.Join(dir, "epd.sock")
	journal := filepath.Join(dir, "journal")
	if err := os.Mkdir(journal, 0o700); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{
		config:                               "[live]\nmode = \"advise\"\n",
		filepath.Join(journal, "GPU-1.json"): "{}",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args []string
		says []string
	}{
		{
			[]string{
				"--gpu", "sim:2", "--state", state, "--socket", socket, "--config", config, "--slurm", "off",
			},
			[]string{
				"would decide by configuration ", "mode advise", "would look after V100 at ",
				"would listen at " + socket,
			},
		},
		{
			[]string{
				"agent", "--gpu", "sim", "--state", state, "--socket", socket, "--controller", "head:6821",
			},
			[]string{"would look after V100 at ", "would listen at " + socket},
		},
		{
			[]string{
				"controller", "--state", state, "--socket", socket, "--listen", "127.0.0.1:6821",
				"--slurm", "off",
			},
			[]string{"mode observe", "would listen at 127.0.0.1:6821"},
		},
		{
			[]string{"restore", "--journal", journal, "--gpu", "sim", "--state", state},
			[]string{"would give the clocks of GPU-1 back"},
		},
		{
			[]string{"restore", "--journal", filepath.Join(dir, "none"), "--gpu", "sim", "--state", state},
			[]string{"would do nothing"},
		},
		{
			[]string{"model", "use", "--socket", socket, "--dry-run", "w", "V100", "4"},
			[]string{"would have epd use version 4 of the model for w on V100"},
		},
		{
			[]string{"model", "use", "--socket", socket, "--dry-run", "w", "V100", "0"},
			[]string{"would have epd use no model for w on V100"},
		},
		{
			[]string{"model", "use", "--socket", socket, "--dry-run", "--free", "w", "V100"},
			[]string{"would let what is learnt replace the model of w on V100 again"},
		},
	} {
		args := c.args
		if !slices.Contains(args, "--dry-run") {
			args = append(args, "--dry-run")
		}
		var out, complaint bytes.Buffer
		if code := run(t.Context(), append([]string{"epd"}, args...), &out, &complaint); code != exitDone {
			t.Errorf("epd %q: %d %s", args, code, &complaint)
		}
		for _, say := range c.says {
			if !strings.Contains(out.String(), say) {
				t.Errorf("epd %q doesn't say %q:\n%s", args, say, &out)
			}
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 {
		t.Errorf("%v, %v: want the configuration and the journal, as they were", files, err)
	}
	var complaint bytes.Buffer
	wrong := []string{
		"epd", "--dry-run", "--gpu", "sim", "--state", state, "--config", filepath.Join(dir, "none.toml"),
	}
	if code := run(t.Context(), wrong, io.Discard, &complaint); code != exitFailed ||
		!strings.Contains(complaint.String(), "none.toml") {
		t.Errorf("a configuration that isn't there: %d %s", code, &complaint)
	}
}
