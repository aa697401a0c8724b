package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/testkit/hostiletest"

	"github.com/epplan/epplan/internal/cli/terminal"
)

// Whatever an answer of epd has in any place, which users, nodes and administrators wrote: what is printed is
// plain text, in JSON and CSV too.
func TestNoTextThatEpdPassesOnDoesAnything(t *testing.T) {
	for _, command := range []string{
		"status", "jobs", "explain 4711", "explain 4712", "explain 4713", "savings", "levers", "reload", "history",
		"estimate testdata/job.sh", "levers --undo", "import sacct testdata/sacct.txt", "plan --from-slurm",
		"doctor --only gpus,journal --role node",
		"status --json", "jobs --json", "explain 4712 --json", "savings --json", "levers --json",
		"estimate testdata/job.sh --json", "plan --from-slurm --json", "jobs --csv",
	} {
		every := 1
		if strings.HasPrefix(command, "plan") { // which takes its time
			every = 61
		}
		t.Run(command, func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "s")
			args := strings.Fields(command)
			asks := "--socket"
			if args[0] == "doctor" {
				asks = "--agent-socket"
			}
			var spoiler *hostiletest.Spoiler
			listen(t, socket, hostiletest.NewHandler(sayings(), &spoiler))
			hostiletest.Places(every, func(s *hostiletest.Spoiler) {
				spoiler = s
				code, stdout, stderr := inProcess(t, append(slices.Clone(args), asks, socket)...)
				if s.Place == 0 && (code != terminal.ExitDone || s.Seen == 0) {
					t.Fatalf("status %d, %d texts: %s", code, s.Seen, stderr)
				}
				for output, kind := range map[string]string{stdout: args[len(args)-1], stderr: ""} {
					if err := hostiletest.Plain(output, kind); err != nil {
						t.Errorf("place %d: %v", s.Place, err)
					}
				}
			})
		})
	}
}

// Whatever the cells of a file have in them: what is printed of it, or said of what is wrong, is plain text.
func TestNoTextOfAFileDoesAnything(t *testing.T) {
	for command, name := range map[string]string{
		"plan FILE --cluster paper": "tasks.csv", "plan FILE --cluster paper --json": "tasks.csv",
		"explain 1 FILE --cluster paper": "tasks.csv", "compare FILE --cluster paper -p edl --csv": "tasks.csv",
		"consolidate FILE": "utilisation.csv", "consolidate FILE --json": "utilisation.csv",
		"correlate FILE": "utilisation.csv", "correlate FILE --csv": "utilisation.csv",
		"predict --train testdata/history.csv --test FILE --csv": "waiting.csv", "import sacct FILE": "sacct.txt",
		"model fit FILE": "measured.csv", "model contention FILE": "coruns.csv", "model optimum FILE": "params.csv",
		"config check FILE": "shared.toml",
	} {
		t.Run(command, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata", name))
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), name)
			args := strings.Fields(strings.ReplaceAll(command, "FILE", file))
			rows := strings.SplitN(string(data), "\n", 3)
			for line, row := range rows[:2] {
				cells := strings.FieldsFunc(row, func(r rune) bool { return strings.ContainsRune(",|", r) })
				for cell, was := range cells {
					text := hostiletest.Texts[(line+cell)%len(hostiletest.Texts)]
					spoilt := slices.Clone(rows)
					spoilt[line] = strings.Replace(row, was, `"`+strings.ReplaceAll(text, `"`, `""`)+`"`, 1)
					if err := os.WriteFile(file, []byte(strings.Join(spoilt, "\n")), 0o600); err != nil {
						t.Fatal(err)
					}
					_, stdout, stderr := inProcess(t, args...)
					err := errors.Join(hostiletest.Plain(stdout, args[len(args)-1]), hostiletest.Plain(stderr, ""))
					if err != nil || strings.Contains(stderr, "has no flag") {
						t.Errorf("line %d, cell %d: %v %s", line+1, cell+1, err, stderr)
					}
				}
			}
		})
	}
}
