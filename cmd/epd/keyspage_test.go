package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/testkit/doctest"
)

// The page doesn't show keys: … stands for that of the machine that is named before it.
func TestThePageOfKeysWorksAsWritten(t *testing.T) {
	c := doctest.Claim(t, "keys")
	folders := map[string]string{"head# ": t.TempDir(), "node# ": t.TempDir()}
	known := make(map[string]string) // by role and name
	for _, b := range c.Blocks {
		for _, s := range b.Steps {
			c.Ran(s)
			command, isKeys := strings.CutPrefix(s.Command, "epd keys ")
			dir := folders[s.Prompt]
			if !isKeys || dir == "" {
				t.Fatalf("%s: %q, want epd keys on the head or on the node", s.At(), s.Command)
			}
			command = strings.Replace(command, " --owner slurm", "", 1) // whom not every machine has
			for who, key := range known {
				command = strings.Replace(command, who+" …", who+" "+key, 1)
			}
			before, line, _ := strings.Cut(strings.TrimSuffix(command, "'"), "'")
			words := strings.Fields(before)
			if line != "" {
				words = append(words, line)
			}
			file := []string{"--trusted-keys", filepath.Join(dir, "trusted-keys")}
			if words[0] == "make" {
				file = []string{"--key", filepath.Join(dir, "key")}
			}
			if words[0] == "add" && strings.Contains(command, "--replace") { // after it was taken out
				line = mustKeys(t, "make", "--key", filepath.Join(dir, "new"), "--name", "gpu01")
				words[len(words)-1] = line
			}
			said := mustKeys(t, append(append([]string{words[0]}, file...), words[1:]...)...)
			if words[0] == "make" {
				parts := strings.Fields(said)
				known[parts[0]+" "+parts[1]] = parts[2]
			}
			if said != "" {
				said += "\n"
			}
			if !doctest.Shows(said, s.Shown) {
				t.Errorf("%s: %s\n%s", s.At(), s.Command, said)
			}
		}
	}
}
