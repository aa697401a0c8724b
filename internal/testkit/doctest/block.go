package doctest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Block is a fenced block of a page.
type Block struct {
	Page   string
	Line   int    // of its first fence, from 1
	Info   string // the word behind the fence
	Text   string // between the fences
	Runner string // who runs it; "" for a block without commands, and where nobody does
	// NotRun is why nobody runs its commands.
	NotRun string
	Steps  []*Step
}

// At returns where a block is, for messages.
func (b *Block) At() string { return fmt.Sprintf("%s:%d", b.Page, b.Line) }

// Step is a command of a block and what it shows.
type Step struct {
	Page string
	Line int // of the command, from 1
	// "# " root, "$ " a user, "head# " and "node# " root on that machine; "" in a block
	// without prompts.
	Prompt  string
	Command string // a backslash at the end of a line is resolved
	Shown   []string
}

// At returns where a step is, for messages.
func (s *Step) At() string { return fmt.Sprintf("%s:%d", s.Page, s.Line) }

var (
	runBy       = regexp.MustCompile(`^<!-- run by ([a-z-]+) -->$`)
	notRun      = regexp.MustCompile(`^<!-- not run: (.+) -->$`)
	fence       = regexp.MustCompile("^\\s*(`{3,}|~{3,})\\s*([^`]*)$")
	commandInfo = []string{"console", "sh", "bash", "shell"}
)

// IsCommands reports whether the block has commands.
func (b *Block) IsCommands() bool { return slices.Contains(commandInfo, b.Info) }

// Blocks returns the fenced blocks of a page, and what is wrong with them.
func (p *Page) Blocks() (blocks []*Block, faults []string) {
	var open *Block
	end, before := "", ""
	for i, line := range p.Lines {
		part := fence.FindStringSubmatch(line)
		switch {
		case open == nil && part != nil:
			open, end = &Block{Page: p.Name, Line: i + 1, Info: strings.TrimSpace(part[2])}, part[1]
			if open.Info == "" {
				faults = append(faults, open.At()+": a block without a word that says what it is, such as "+
					"console, sh, text or toml")
			}
			open.claim(before)
		case open != nil && part != nil && part[2] == "" && strings.HasPrefix(part[1], end):
			if open.IsCommands() {
				faults = append(faults, open.findSteps()...)
			}
			blocks, open = append(blocks, open), nil
		case open != nil:
			open.Text += line + "\n"
		}
		before = strings.TrimSpace(line)
	}
	if open != nil {
		faults = append(faults, open.At()+": the block has no end")
	}
	return blocks, faults
}

// claim says who runs the block: whom the line before it names, or whose page it is.
func (b *Block) claim(before string) {
	if !b.IsCommands() {
		if part := runBy.FindStringSubmatch(before); part != nil {
			b.Runner = part[1]
		}
		return
	}
	switch by, not := runBy.FindStringSubmatch(before), notRun.FindStringSubmatch(before); {
	case by != nil:
		b.Runner = by[1]
	case not != nil:
		b.NotRun = not[1]
	default:
		b.Runner = runnerOf(b.Page)
	}
}

// findSteps divides the block into commands. A block without prompts is one.
func (b *Block) findSteps() []string {
	lines := strings.Split(strings.TrimSuffix(b.Text, "\n"), "\n")
	prompts := promptsOf(b.Runner)
	if b.Info != "console" {
		b.Steps = []*Step{{Page: b.Page, Line: b.Line + 1, Command: b.Text}}
		return nil
	}
	for i, line := range lines {
		at := b.Line + 1 + i
		if prompt := promptOf(line, prompts); prompt != "" {
			b.Steps = append(b.Steps, &Step{
				Page: b.Page, Line: at, Prompt: prompt, Command: line[len(prompt):],
			})
			continue
		}
		if len(b.Steps) == 0 {
			return []string{fmt.Sprintf("%s:%d: output without a command behind one of the prompts %q",
				b.Page, at, prompts)}
		}
		last := b.Steps[len(b.Steps)-1]
		if strings.HasSuffix(last.Command, `\`) && len(last.Shown) == 0 {
			last.Command = strings.TrimSuffix(last.Command, `\`) + strings.TrimSpace(line)
			continue
		}
		last.Shown = append(last.Shown, line)
	}
	return nil
}

// promptOf returns the prompt with which a line begins, "" for none.
func promptOf(line string, prompts []string) string {
	for _, prompt := range prompts {
		if strings.HasPrefix(line, prompt) {
			return prompt
		}
	}
	return ""
}

// programs are what a command begins with.
var programs = []string{
	"epplan", "epd", "make", "go", "curl", "sudo", "apt", "apt-get", "dpkg", "rpm", "dnf", "systemctl",
	"sacct", "sbatch", "srun",
	"scontrol", "squeue", "sinfo", "nvidia-smi", "sqlite3", "docker", "apptainer", "promtool", "mdbook",
	"man", "install", "mkdir", "git",
}

// beginsWithCommand reports whether a line is a command.
func beginsWithCommand(line string) bool {
	if strings.HasPrefix(line, "$ ") {
		return true
	}
	word, rest, _ := strings.Cut(line, " ")
	return slices.Contains(programs, word) && rest != "" && !strings.HasPrefix(rest, "─") &&
		!strings.HasPrefix(rest, " ")
}

// usageMark begins a part of a page that follows from the program: its indented
// lines say what may be typed.
const usageMark, usageEnd = "<!-- usage of ", "<!-- end of usage -->"

// Stray returns the commands of a page outside of command blocks, where no test
// would see them.
func (p *Page) Stray() []string {
	var found []string
	inFence, inUsage, info := false, false, ""
	for i, line := range p.Lines {
		at := fmt.Sprintf("%s:%d", p.Name, i+1)
		switch part := fence.FindStringSubmatch(line); {
		case part != nil:
			inFence, info = !inFence, strings.TrimSpace(part[2])
		case strings.HasPrefix(line, usageMark):
			inUsage = true
		case line == usageEnd:
			inUsage = false
		case inFence && info == "text" && beginsWithCommand(line):
			found = append(found, at+": a command in a block of text: "+line)
		case !inFence && !inUsage && strings.HasPrefix(line, "    ") &&
			beginsWithCommand(strings.TrimSpace(line)):
			found = append(found,
				at+": a command that is only indented, want a fenced block: "+strings.TrimSpace(line))
		}
	}
	return found
}
