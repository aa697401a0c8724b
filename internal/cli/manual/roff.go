package manual

import (
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

// roffPage is a page being written, in the macros of man(7).
type roffPage struct{ strings.Builder }

func newRoffPage(name string, section int, date time.Time, version string) *roffPage {
	p := &roffPage{}
	p.line(`.TH %s %d %s "epplan %s" "epplan manual"`, escapeRoff(strings.ToUpper(name)), section,
		date.Format(time.DateOnly), escapeRoff(version))
	p.line(".nh") // no hyphenation: flags and paths stay whole
	p.line(".ad l")
	return p
}

func (p *roffPage) line(format string, args ...any) {
	_, _ = fmt.Fprintf(p, format+"\n", args...) // into memory
}

const maxLineWidth = 79

func (p *roffPage) text(text string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > maxLineWidth {
			p.line("%s", escapeRoff(line))
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	p.line("%s", escapeRoff(line))
}

func (p *roffPage) section(name string) { p.line(".SH %s", quoteArgument(name)) }

func quoteArgument(text string) string {
	if strings.Contains(text, " ") {
		return `"` + text + `"`
	}
	return text
}

// roffEscapes are the characters that roff understands otherwise, or shows as
// others than are meant.
var roffEscapes = strings.NewReplacer(`\`, `\e`, `-`, `\-`, `'`, `\(aq`, "`", `\(ga`, `^`, `\(ha`, `~`,
	`\(ti`, `"`, `\(dq`)

// escapeRoff returns a text as roff shows it literally; a line that begins with a dot is
// no macro.
func escapeRoff(text string) string {
	text = roffEscapes.Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}

// synopsis is a command line: what is typed as it stands is bold, what stands
// for something else is italic.
func (p *roffPage) synopsis(line string) {
	var b strings.Builder
	literal := true
	for i, word := range strings.Fields(line) {
		if i > 0 {
			b.WriteByte(' ')
		}
		literal = literal && word == strings.ToLower(word) && !strings.ContainsAny(word, "[|")
		switch {
		case literal || strings.HasPrefix(word, "--"):
			b.WriteString(`\fB` + roffEscapes.Replace(word) + `\fR`)
		case strings.ContainsAny(word, "[]|"):
			b.WriteString(roffEscapes.Replace(word))
		default:
			b.WriteString(`\fI` + roffEscapes.Replace(word) + `\fR`)
		}
	}
	p.line("%s", b.String())
}

// prose is text by lines; those that are indented stay as they are. An empty
// line, or a full stop at the end of one, ends a paragraph.
func (p *roffPage) prose(lines []string) {
	literal := false
	for i, line := range lines {
		if indented := strings.HasPrefix(line, "  "); indented != literal {
			literal = indented
			p.line("%s", map[bool]string{true: ".PP\n.nf", false: ".fi\n.PP"}[literal])
		}
		switch {
		case literal:
			p.line("%s", escapeRoff(line))
		case strings.TrimSpace(line) != "":
			p.text(line)
		}
		next := i+1 < len(lines) && lines[i+1] != "" && !strings.HasPrefix(lines[i+1], "  ")
		if !literal && next && (line == "" || strings.HasSuffix(line, ".")) {
			p.line(".PP")
		}
	}
	if literal {
		p.line(".fi")
	}
}

// entries is a section that is a list; none where it is empty.
func (p *roffPage) entries(name string, entries []Entry) {
	if len(entries) == 0 {
		return
	}
	p.section(name)
	for _, e := range entries {
		p.line(".TP\n\\fB%s\\fR", roffEscapes.Replace(e.Term))
		p.text(asSentence(e.Text))
	}
}

func (p *roffPage) options(flags []cli.Flag) {
	p.section("OPTIONS")
	for _, f := range flags {
		doc, ok := f.(cli.DocGenerationFlag)
		if v, visible := f.(cli.VisibleFlag); !ok || visible && !v.IsVisible() {
			continue
		}
		placeholder, usage := splitUsage(doc)
		if placeholder == "" && doc.TakesValue() {
			placeholder = "VALUE"
		}
		names := make([]string, 0, len(f.Names()))
		for _, name := range f.Names() {
			dashes := `\-\-`
			if len(name) == 1 {
				dashes = `\-`
			}
			names = append(names, `\fB`+dashes+roffEscapes.Replace(name)+`\fR`)
		}
		if placeholder != "" {
			names[0] += gap(placeholder) + `\fI` + roffEscapes.Replace(placeholder) + `\fR`
		}
		p.line(".TP\n%s", strings.Join(names, ", "))
		usage = asSentence(usage)
		if text := strings.Trim(doc.GetDefaultText(), `"`); text != "" && doc.TakesValue() {
			usage += " Default: " + text + "."
		}
		p.text(usage)
	}
	p.line(".TP\n\\fB\\-\\-help\\fR, \\fB\\-h\\fR\nShow help.")
}

// splitUsage returns what a flag's usage calls its value, "" where it has none, and the usage in words.
func splitUsage(flag cli.DocGenerationFlag) (placeholder, usage string) {
	before, rest, _ := strings.Cut(flag.GetUsage(), "`")
	placeholder, after, _ := strings.Cut(rest, "`")
	return placeholder, before + placeholder + after
}

func (p *roffPage) examples(lines []string) {
	if len(lines) == 0 {
		return
	}
	p.section("EXAMPLES")
	for i, line := range lines {
		if i > 0 {
			p.line(".PP")
		}
		p.line(".EX\n%s\n.EE", escapeRoff(line))
	}
}

func (p *roffPage) seeAlso(pages []string) {
	if len(pages) == 0 {
		return
	}
	p.section("SEE ALSO")
	for i, name := range pages {
		comma := ","
		if i == len(pages)-1 {
			comma = ""
		}
		title, section, _ := strings.Cut(name, "(")
		p.line(".BR %s (%s%s", escapeRoff(title), section, comma)
	}
}
