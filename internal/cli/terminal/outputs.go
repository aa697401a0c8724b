package terminal

import (
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// outputFlags are the flags that name what a command writes, where their help
// says FILE.
var outputFlags = []string{"curve", "decisions", "html", "log", "out", "svg", "workload"}

// namedOutputs returns the files that a command is going to write, by its flags.
func namedOutputs(c *cli.Context, flags []cli.Flag) []outputFile {
	var named []outputFile
	for _, f := range flags {
		if name := c.String(f.Names()[0]); IsOutput(f) && name != "" && name != "-" {
			named = append(named, outputFile{f.Names()[0], name})
		}
	}
	return named
}

// IsOutput reports whether a flag names a file that the command writes.
func IsOutput(f cli.Flag) bool {
	text, ok := f.(*cli.StringFlag)
	return ok && slices.Contains(outputFlags, text.Name) && strings.Contains(text.Usage, "`FILE`")
}

// checkInput is told of each file before anything of it is read, and refuses those
// that the command is to write: it would write over what it was given.
func (t *Terminal) checkInput(file *os.File) error {
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil //nolint:nilerr // reading says what is wrong with it
	}
	for _, out := range t.outputs {
		if there, err := os.Stat(out.name); err == nil && os.SameFile(info, there) {
			return Usagef("--%s %s is a file that the command reads, want another one", out.flag, out.name)
		}
	}
	t.inputs = append(t.inputs, info)
	return nil
}

// checkOverwrite refuses to write what was read: a file in a folder has a name that no
// flag has said.
func (t *Terminal) checkOverwrite(name string) error {
	there, err := os.Stat(name)
	if err != nil {
		return nil //nolint:nilerr // it is to be made
	}
	if slices.ContainsFunc(t.inputs, func(read fs.FileInfo) bool { return os.SameFile(read, there) }) {
		return Usagef("%s is to be written, and is a file that the command reads, want another place", name)
	}
	return nil
}
