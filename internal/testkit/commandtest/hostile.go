package commandtest

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/testkit/hostiletest"
)

// HostileFiles wants plain text of commands, whatever the cells of the file in testdata that they read, FILE,
// have in them.
func (p *Program) HostileFiles(t *testing.T, commands map[string]string) {
	t.Helper()
	for command, name := range commands {
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
					_, stdout, stderr := p.InProcess(t, args...)
					err := errors.Join(
						hostiletest.Plain(stdout, args[len(args)-1]),
						hostiletest.Plain(stderr, ""),
					)
					if err != nil || strings.Contains(stderr, "has no flag") {
						t.Errorf("line %d, cell %d: %v %s", line+1, cell+1, err, stderr)
					}
				}
			}
		})
	}
}
