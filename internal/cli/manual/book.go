package manual

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
)

// Entry is a line of a list: a term and what it means.
type Entry struct{ Term, Text string }

// File is a file that a program uses.
type File struct {
	Entry
	Flags []string // commands with one of these flags use it; none: only the program's own page names it
}

// Book is what all pages of a program have in common.
type Book struct {
	App        *cli.App
	Section    int       // of the manual: 1 or 8
	Date       time.Time // of the pages
	Version    string    // of the program
	ExitStatus []Entry
	Files      []File
	SeeAlso    []string // further pages, such as epd(8)
}

// ExampleMark begins a line of a description that is an example.
const ExampleMark = "Example: "

// Date returns when pages are from: what SOURCE_DATE_EPOCH says, in seconds since
// 1970, so that two builds of one source are the same; else now.
func Date(epoch string, now time.Time) (time.Time, error) {
	if epoch == "" {
		return now.UTC(), nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q, want seconds since 1970: %w", epoch, err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// Pages returns the pages of a program and its commands, by file name such as
// epplan-plan.1.
func (b *Book) Pages() map[string]string {
	pages := make(map[string]string)
	top := commandPage{
		name: b.App.Name, usage: b.App.Usage, synopsis: b.App.UsageText, description: b.App.Description,
		flags: b.App.Flags, commands: b.App.Commands, top: true,
	}
	b.add(pages, &top)
	return pages
}

// Write writes the pages into the folder of their section below dir, such as
// dir/man1.
func (b *Book) Write(dir string) error {
	dir = filepath.Join(dir, "man"+strconv.Itoa(b.Section))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range b.Pages() {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

type commandPage struct {
	name, usage, synopsis, description string
	flags                              []cli.Flag
	commands                           []*cli.Command
	siblings                           []string // pages of the commands beside it
	parent                             string
	top                                bool
}

// add adds the page of a command, and those of its own commands.
func (b *Book) add(pages map[string]string, c *commandPage) {
	visible := slices.DeleteFunc(slices.Clone(c.commands), func(sub *cli.Command) bool { return sub.Hidden })
	c.commands = visible
	names := make([]string, 0, len(visible))
	for _, sub := range visible {
		names = append(names, pageName(c.name+" "+sub.Name))
	}
	pages[pageName(c.name)+"."+strconv.Itoa(b.Section)] = b.pageText(c)
	for i, sub := range visible {
		name := c.name + " " + sub.Name
		synopsis := sub.UsageText
		if synopsis == "" {
			synopsis = name + " COMMAND"
		}
		b.add(pages, &commandPage{
			name: name, usage: sub.Usage, synopsis: synopsis, description: sub.Description, flags: sub.Flags,
			commands: sub.Subcommands,
			parent:   pageName(c.name), siblings: slices.Delete(slices.Clone(names), i, i+1),
		})
	}
}

func pageName(name string) string { return strings.ReplaceAll(name, " ", "-") }

func (b *Book) pageText(c *commandPage) string {
	p := newRoffPage(pageName(c.name), b.Section, b.Date, b.Version)
	p.section("NAME")
	p.line(`%s \- %s`, escapeRoff(pageName(c.name)), escapeRoff(c.usage))
	p.section("SYNOPSIS")
	for i, line := range strings.Split(c.synopsis, "\n") {
		if i > 0 {
			p.line(".br")
		}
		p.synopsis(line)
	}
	prose, examples := splitDescription(c.description)
	if len(prose) > 0 {
		p.section("DESCRIPTION")
		p.prose(prose)
	}
	b.commands(p, c)
	p.options(c.flags)
	p.entries("EXIT STATUS", b.ExitStatus)
	p.entries("ENVIRONMENT", environment(c.flags))
	p.entries("FILES", b.files(c))
	p.examples(examples)
	p.seeAlso(b.related(c))
	return p.String()
}

// commands lists the commands below one, each with its page.
func (b *Book) commands(p *roffPage, c *commandPage) {
	if len(c.commands) == 0 {
		return
	}
	p.section("COMMANDS")
	for _, sub := range c.commands {
		p.line(".TP")
		p.line(`.BR %s (%d)`, escapeRoff(pageName(c.name+" "+sub.Name)), b.Section)
		p.text(asSentence(sub.Usage))
	}
}

func (b *Book) files(c *commandPage) []Entry {
	var found []Entry
	for _, f := range b.Files {
		uses := func(flag cli.Flag) bool { return slices.Contains(f.Flags, flag.Names()[0]) }
		if c.top || slices.ContainsFunc(c.flags, uses) {
			found = append(found, f.Entry)
		}
	}
	return found
}

func (b *Book) related(c *commandPage) []string {
	section := fmt.Sprintf("(%d)", b.Section)
	if c.top {
		return b.SeeAlso // its commands are listed above
	}
	found := []string{c.parent + section}
	if c.parent != b.App.Name {
		for _, name := range c.siblings {
			found = append(found, name+section)
		}
	}
	return append(found, b.SeeAlso...)
}

func environment(flags []cli.Flag) []Entry {
	var found []Entry
	for _, f := range flags {
		doc, ok := f.(cli.DocGenerationFlag)
		if !ok {
			continue
		}
		for _, name := range doc.GetEnvVars() {
			found = append(found, Entry{
				Term: name, Text: "In place of --" + f.Names()[0] + ", where that isn't given.",
			})
		}
	}
	return found
}

// splitDescription takes the examples out of a description, and what another section says.
func splitDescription(description string) (prose, examples []string) {
	for line := range strings.SplitSeq(strings.Trim(description, "\n"), "\n") {
		example, ok := strings.CutPrefix(line, ExampleMark)
		switch {
		case ok:
			examples = append(examples, example)
		case !strings.HasPrefix(line, "Exit status: "):
			prose = append(prose, line)
		}
	}
	for len(prose) > 0 && strings.TrimSpace(prose[len(prose)-1]) == "" {
		prose = prose[:len(prose)-1]
	}
	return prose, examples
}

// asSentence returns a text with a capital and a full stop.
func asSentence(text string) string {
	_, size := utf8.DecodeRuneInString(text)
	return strings.ToUpper(text[:size]) + strings.TrimSuffix(text[size:], ".") + "."
}
