package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/testkit/hostiletest"
)

// Whatever an answer of epd has in any place, which users, nodes and administrators wrote: what is printed is
// plain text, in JSON and CSV too.
func TestNoTextThatEpdPassesOnDoesAnything(t *testing.T) {
	for _, command := range []string{
		"status", "jobs", "explain 4711", "explain 4712", "explain 4713", "savings", "report", "levers", "reload",
		"history",
		"estimate testdata/job.sh", "levers --undo", "import sacct testdata/sacct.txt", "plan --from-slurm",
		"doctor --only gpus,journal --role node",
		"status --json", "jobs --json", "explain 4712 --json", "savings --json", "report --json", "report --csv",
		"levers --json", "jobs -o wide", "report -o md",
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
	underTest().HostileFiles(t, map[string]string{
		"init - --nodes FILE":                                    "nodes.txt",
		"plan FILE --cluster paper":                              "tasks.csv",
		"plan FILE --cluster paper --json":                       "tasks.csv",
		"explain 1 FILE --cluster paper":                         "tasks.csv",
		"compare FILE --cluster paper -p edl --csv":              "tasks.csv",
		"predict --train testdata/history.csv --test FILE --csv": "waiting.csv",
		"import sacct FILE":                                      "sacct.txt",
		"audit FILE --change 2026-10-01":                         "change.txt",
		"model fit FILE":                                         "measured.csv",
		"model optimum FILE":                                     "params.csv",
		"config check FILE":                                      "shared.toml",
	})
}
