package completion

import (
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// Flag is what the scripts put behind the words of a command line, of which the
// last one, empty perhaps, is being written.
const Flag = "--generate-bash-completion"

// IsRequest reports whether a command line is a question of a script.
func IsRequest(args []string) bool { return len(args) > 0 && args[len(args)-1] == Flag }

// Values are what may be written at a place: after a flag ("plan --format", or
// "--policy" for that flag of any command), or as an argument of a command
// ("completion").
type Values map[string]func() []string

// WriteCandidates writes what may stand in place of the last of a script's words, the
// program's name first, one to a line. Nothing is the answer where a file may
// stand, or anything.
func WriteCandidates(w io.Writer, app *cli.App, args []string, values Values) error {
	var b strings.Builder
	for _, word := range candidates(app, args[1:len(args)-1], values) {
		b.WriteString(word + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func candidates(app *cli.App, words []string, values Values) []string {
	words = rejoinWords(words)
	if len(words) == 0 {
		return nil
	}
	current := words[len(words)-1]
	at := commandContext{commands: app.Commands, flags: app.Flags}
	rest := at.descend(words[:len(words)-1])
	if slices.Contains(rest, "--") {
		return nil
	}
	if flag, value, ok := strings.Cut(current, "="); ok && strings.HasPrefix(flag, "-") {
		return matchingWords(at.flagValues(flag, values), value, flag+"=")
	}
	if len(rest) > 0 && at.takesValue(rest[len(rest)-1]) {
		return matchingWords(at.flagValues(rest[len(rest)-1], values), current, "")
	}
	if strings.HasPrefix(current, "-") {
		return matchingWords(at.flagNames(), current, "")
	}
	var all []string
	for _, c := range at.commands {
		if !c.Hidden && len(rest) == 0 {
			all = append(all, c.Names()...)
		}
	}
	if of, ok := values[at.path]; ok {
		all = append(all, of()...)
	}
	return matchingWords(all, current, "")
}

// rejoinWords puts together what bash takes apart: --flag = value.
func rejoinWords(words []string) []string {
	var whole []string
	for i, word := range words {
		last := len(whole) - 1
		if word != "=" || last < 0 || !strings.HasPrefix(whole[last], "--") {
			whole = append(whole, word)
		} else if i == len(words)-1 {
			whole = append(whole, "")
		}
	}
	return whole
}

type commandContext struct {
	path     string // of commands, without the program
	commands []*cli.Command
	flags    []cli.Flag
}

// descend follows the commands at the beginning, and returns the words behind
// them.
func (p *commandContext) descend(words []string) []string {
	for i, word := range words {
		if word == "help" {
			continue
		}
		at := slices.IndexFunc(p.commands, func(c *cli.Command) bool { return c.HasName(word) })
		if at < 0 {
			return words[i:]
		}
		c := p.commands[at]
		p.path = strings.TrimSpace(p.path + " " + c.Name)
		p.commands, p.flags = c.Subcommands, c.Flags
	}
	return nil
}

// findFlag returns the flag of a word; nil: there is none.
func (p *commandContext) findFlag(word string) cli.Flag {
	name := strings.TrimLeft(word, "-")
	i := slices.IndexFunc(p.flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
	if i < 0 || !strings.HasPrefix(word, "-") {
		return nil
	}
	return p.flags[i]
}

// takesValue reports whether a word is a flag that wants a word behind it.
func (p *commandContext) takesValue(word string) bool {
	f, ok := p.findFlag(word).(cli.DocGenerationFlag)
	return ok && f.TakesValue()
}

// flagValues returns those that a flag may have, if they are few.
func (p *commandContext) flagValues(word string, values Values) []string {
	f := p.findFlag(word)
	if f == nil {
		return nil
	}
	flag := "--" + f.Names()[0]
	for _, key := range []string{p.path + " " + flag, flag} {
		if of, ok := values[key]; ok {
			return of()
		}
	}
	return nil
}

func (p *commandContext) flagNames() []string {
	names := make([]string, 0, len(p.flags)+1)
	for _, f := range p.flags {
		if v, ok := f.(cli.VisibleFlag); ok && v.IsVisible() {
			names = append(names, "--"+f.Names()[0])
		}
	}
	return append(names, "--help")
}

// matchingWords returns the words that begin as the one being written does, each behind a
// prefix. In a list only what is behind the last comma is being written.
func matchingWords(words []string, current, prefix string) []string {
	if at := strings.LastIndexByte(current, ','); at >= 0 {
		prefix, current = prefix+current[:at+1], current[at+1:]
	}
	var found []string
	for _, word := range words {
		if strings.HasPrefix(word, current) {
			found = append(found, prefix+word)
		}
	}
	return found
}
