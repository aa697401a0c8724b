package main

import (
	"flag"
	"io"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write docs/reference/epd.md anew")

const introduction = `<!-- Written by go test ./cmd/epd -update. -->

The flags and commands of the daemon, as ` + "`epd --help` and `man epd`" +
	` have them. What it does is in [epd](../epd.md), how it is installed on a
cluster in [epd on Slurm](../slurm.md), its configuration file in [Configuration](config.md). ` +
	"`epd agent` and `epd controller`" + ` are
short for ` + "`--role agent` and `--role controller`" + `. Flags stand before further words.`

// TestTheReferenceOfTheDaemonIsWhatItsHelpSays keeps the page of its flags.
func TestTheReferenceOfTheDaemonIsWhatItsHelpSays(t *testing.T) {
	b, err := manualBook(application(io.Discard, io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	const page = "../../docs/reference/epd.md"
	want := b.Markdown("The daemon's command line", introduction)
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != want {
		t.Errorf("%s is out of date (go test ./cmd/epd -update writes it): %v", page, err)
	}
}
