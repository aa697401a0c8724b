package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/testkit/doctest"
)

// keysPage is the page about keys as it is read: on two machines, whose /etc/epplan are folders. The page
// doesn't show keys: … stands for that of the machine that is named before it.
type keysPage struct {
	folders map[string]string // by prompt
	known   map[string]string // keys by role and name
}

// words returns a command's, but for "epd keys", with the files of its machine.
func (p *keysPage) words(t *testing.T, s *doctest.Step) []string {
	t.Helper()
	command, isKeys := strings.CutPrefix(s.Command, "epd keys ")
	dir := p.folders[s.Prompt]
	if !isKeys || dir == "" {
		t.Fatalf("%s: %q, want epd keys on the head or on the node", s.At(), s.Command)
	}
	command = strings.Replace(command, " --owner slurm", "", 1) // whom not every machine has
	if strings.Contains(command, "--replace") {
		p.make(t, "--key", filepath.Join(t.TempDir(), "new"), "--name", "gpu01")
	}
	for who, key := range p.known {
		command = strings.Replace(command, who+" …", who+" "+key, 1)
	}
	plain, line, quoted := strings.Cut(strings.TrimSuffix(command, "'"), "'")
	words := strings.Fields(plain)
	if quoted {
		words = append(words, line)
	}
	file := []string{"--trusted-keys", filepath.Join(dir, "trusted-keys")}
	if words[0] == "make" {
		file = []string{"--key", filepath.Join(dir, "key")}
	}
	return append(append(words[:1:1], file...), words[1:]...)
}

// make makes a key, and notes it.
func (p *keysPage) make(t *testing.T, words ...string) string {
	t.Helper()
	said := mustKeys(t, append([]string{"make"}, words...)...)
	role, rest, _ := strings.Cut(said, " ")
	name, key, _ := strings.Cut(rest, " ")
	p.known[role+" "+name] = key
	return said
}

func TestThePageOfKeysWorksAsWritten(t *testing.T) {
	c := doctest.Claim(t, "keys")
	p := &keysPage{
		folders: map[string]string{"head# ": t.TempDir(), "node# ": t.TempDir()}, known: make(map[string]string),
	}
	for _, b := range c.Blocks {
		for _, s := range b.Steps {
			c.Ran(s)
			words := p.words(t, s)
			var said string
			if words[0] == "make" {
				said = p.make(t, words[1:]...)
			} else {
				said = mustKeys(t, words...)
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
