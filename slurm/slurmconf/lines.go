// Package slurmconf reads Slurm's configuration files: the settings of slurm.conf, and from gres.conf and slurm.conf
// the GPUs of a node, with which of them each number of SLURM_JOB_GPUS means.
package slurmconf

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/epplan/epplan/slurm"
)

const (
	maxConfBytes = 1 << 20
	maxIncludes  = 16
)

// readConf gives the lines of a Slurm configuration, with those of the files that
// it includes.
func readConf(fsys fs.FS, name string, depth int, each func(file string, l Line) error) error {
	if depth > maxIncludes {
		return fmt.Errorf("%s: more than %d nested Include lines: %w", name, maxIncludes, slurm.ErrInvalid)
	}
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	if len(data) > maxConfBytes {
		return fmt.Errorf("%s: more than %d bytes: %w", name, maxConfBytes, slurm.ErrInvalid)
	}
	for _, l := range linesOf(slurm.ValidUTF8(string(data))) {
		words := strings.Fields(l.Text)
		if strings.EqualFold(words[0], "include") && len(words) == 2 {
			target := words[1]
			if !strings.HasPrefix(target, "/") {
				target = path.Join(path.Dir(name), target)
			}
			if err := readConf(fsys, strings.TrimPrefix(target, "/"), depth+1, each); err != nil {
				return &slurm.ParseError{Source: name, Line: l.Number, Msg: "Include", Err: err}
			}
			continue
		}
		if err := each(name, l); err != nil {
			return err
		}
	}
	return nil
}

// Line is one line of a Slurm configuration, with what continues it.
type Line struct {
	Number int // 1-based, of its first line
	Text   string
}

// pair is a key with its value, as Slurm reads one: spaces may stand around the =, and in quotes.
var (
	pair     = regexp.MustCompile(`^\s*([[:alnum:]_.]+)\s*=\s*(?:"([^"]*)"|([^\s"]+))(?:\s+|$)`)
	firstKey = regexp.MustCompile(`^\s*([[:alnum:]_.]+)\s*=`)
)

// pairs gives a line's values by lower-case key.
func (l Line) pairs(file string) (map[string]string, error) {
	v := map[string]string{}
	fault := func(rest, msg string) error {
		return &slurm.ParseError{
			Source: file, Line: l.Number, Column: len(l.Text) - len(rest) + 1,
			Msg: fmt.Sprintf("%q: %s", slurm.Printable(rest, 60), msg),
		}
	}
	for rest := strings.TrimSpace(l.Text); rest != ""; {
		m := pair.FindStringSubmatch(rest)
		if m == nil {
			return nil, fault(rest, "want key=value")
		}
		key := strings.ToLower(m[1])
		if _, twice := v[key]; twice {
			return nil, fault(rest, "a second value")
		}
		v[key] = m[2] + m[3]
		rest = rest[len(m[0]):]
	}
	return v, nil
}

// linesOf cuts comments, and joins lines that end with a backslash.
func linesOf(text string) []Line {
	var out []Line
	var open bool
	for i, line := range strings.Split(text, "\n") {
		if at := strings.IndexByte(line, '#'); at >= 0 && (at == 0 || line[at-1] != '\\') {
			line = line[:at]
		}
		line = strings.TrimRight(line, " \t\r")
		body, more := strings.CutSuffix(line, `\`)
		if open {
			out[len(out)-1].Text += " " + body
		} else {
			out = append(out, Line{Number: i + 1, Text: body})
		}
		open = more
	}
	return slices.DeleteFunc(out, func(l Line) bool { return strings.TrimSpace(l.Text) == "" })
}

// Settings gives slurm.conf's settings by lower-case name, Text being the value; the last of two counts. A line that
// includes a file, which isn't read, is under "include".
func Settings(conf string) map[string]Line {
	out := map[string]Line{}
	for _, l := range linesOf(conf) {
		if strings.EqualFold(strings.Fields(l.Text)[0], "include") {
			out["include"] = l
			continue
		}
		key, value, ok := strings.Cut(l.Text, "=")
		if key = strings.TrimSpace(key); ok && !strings.ContainsAny(key, " \t") {
			out[strings.ToLower(key)] = Line{Number: l.Number, Text: strings.TrimSpace(value)}
		}
	}
	return out
}

// HookLines gives the lines that set a slurm.conf's Prolog or Epilog, Text being the value. From 23.11 on there may be
// several, each of which counts: they run in the order of the lines. Before, only the last one counted.
func HookLines(conf, key string) []Line {
	var lines []Line
	for _, l := range linesOf(conf) {
		name, value, ok := strings.Cut(l.Text, "=")
		if ok && strings.EqualFold(strings.TrimSpace(name), key) {
			lines = append(lines, Line{Number: l.Number, Text: strings.TrimSpace(value)})
		}
	}
	return lines
}

// Values gives the values of a slurm.conf's settings by lower-case name, without quotes. Files that it includes
// aren't read.
func Values(conf string) map[string]string {
	out := make(map[string]string)
	for key, line := range Settings(conf) {
		if key != "include" {
			out[key] = strings.Trim(line.Text, `"`)
		}
	}
	return out
}
