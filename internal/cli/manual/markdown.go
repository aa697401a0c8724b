package manual

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// Markdown returns the reference of a program on one page: exit statuses, files, and
// each command with its flags.
func (b *Book) Markdown(title, introduction string) string {
	var p strings.Builder
	fmt.Fprintf(&p, "# %s\n\n%s\n\n## Exit status\n\n| status | meaning |\n|---|---|\n", title, introduction)
	for _, e := range b.ExitStatus {
		fmt.Fprintf(&p, "| %s | %s |\n", e.Term, tableCell(e.Text))
	}
	p.WriteString("\n## Files\n\n| file | what it is |\n|---|---|\n")
	for _, f := range b.Files {
		fmt.Fprintf(&p, "| `%s` | %s |\n", f.Term, tableCell(f.Text))
	}
	var add func(c *cli.Command, name string)
	add = func(c *cli.Command, name string) {
		shown := *c
		shared := len(c.Flags) > 0 && len(flagsNotIn(c.Flags, b.App.Flags)) == 0 && name != b.App.Name
		if shared {
			shown.Flags = nil
		}
		fmt.Fprintf(&p, "\n## %[1]s\n\n<!-- usage of %[1]s -->\n%[2]s<!-- end of usage -->\n", name,
			Usage(&shown))
		if shared {
			fmt.Fprintf(&p, "\nIt has the flags of [%[1]s](#%[1]s) but %[2]s.\n", b.App.Name,
				strings.Join(flagsNotIn(b.App.Flags, c.Flags), ", "))
		}
		if _, examples := splitDescription(c.Description); len(examples) > 0 {
			fmt.Fprintf(&p, "\nFor example `%s`.\n", strings.Join(examples, "`, `"))
		}
		for _, sub := range slices.DeleteFunc(slices.Clone(c.Subcommands),
			func(sub *cli.Command) bool { return sub.Hidden }) {
			add(sub, name+" "+sub.Name)
		}
	}
	add(&cli.Command{
		Usage: b.App.Usage, UsageText: b.App.UsageText, Description: b.App.Description, Flags: b.App.Flags,
		Subcommands: b.App.Commands,
	}, b.App.Name)
	return p.String()
}

// flagsNotIn returns the flags that aren't among others.
func flagsNotIn(flags, others []cli.Flag) (names []string) {
	for _, f := range flags {
		if !slices.ContainsFunc(others, func(o cli.Flag) bool { return o.String() == f.String() }) {
			names = append(names, "`--"+f.Names()[0]+"`")
		}
	}
	return names
}

// ResultFile is the usage of the flag --out of commands that print a result.
const ResultFile = "write the result to `FILE`"

// Usage returns a command's purpose, usage line, description without its examples, and
// flags, in Markdown. How and where to results are printed is said once for all commands.
func Usage(c *cli.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s.\n\n", strings.ToUpper(c.Usage[:1])+c.Usage[1:])
	if c.UsageText != "" {
		b.WriteString("    " + strings.ReplaceAll(c.UsageText, "\n", "\n    ") + "\n\n")
	}
	b.WriteString(description(c))
	listed := slices.DeleteFunc(c.VisibleFlags(), func(f cli.Flag) bool {
		text, ok := f.(*cli.StringFlag)
		return ok && (text.Name == "output" || text.Usage == ResultFile)
	})
	if len(listed) == 0 {
		return b.String()
	}
	b.WriteString("| flag | meaning | default |\n|------|---------|---------|\n")
	for _, f := range listed {
		doc, ok := f.(cli.DocGenerationFlag)
		if !ok {
			continue
		}
		names := "--" + strings.Join(f.Names(), ", -")
		placeholder, usage := splitUsage(doc)
		if placeholder != "" {
			names = "--" + f.Names()[0] + gap(placeholder) + placeholder + strings.TrimPrefix(names,
				"--"+f.Names()[0])
		}
		byDefault := strings.Trim(doc.GetDefaultText(), `"`)
		if _, isBool := f.(*cli.BoolFlag); isBool {
			byDefault = ""
		}
		if variables := doc.GetEnvVars(); len(variables) > 0 {
			byDefault = strings.TrimSuffix("$"+strings.Join(variables, ", else $")+", else "+byDefault,
				", else ")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", names, tableCell(usage), byDefault)
	}
	return b.String() + "\n"
}

// gap returns what stands between a flag and its value: nothing where it may be left out, [=N].
func gap(placeholder string) string {
	if strings.HasPrefix(placeholder, "[") {
		return ""
	}
	return " "
}

func tableCell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// description returns a command's description without its examples; its indented lines
// are shown as they are.
func description(c *cli.Command) string {
	var b strings.Builder
	indented := false
	for line := range strings.Lines(c.Description) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, ExampleMark) {
			continue
		}
		if next := strings.HasPrefix(line, "  "); next != indented {
			indented = next
			b.WriteString("\n")
		}
		if indented {
			line = "  " + line
		}
		b.WriteString(line + "\n")
	}
	if b.Len() > 0 {
		b.WriteString("\n")
	}
	return b.String()
}
