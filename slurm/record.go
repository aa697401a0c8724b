package slurm

import "strings"

// scontrolRecord is one record of scontrol show in its many-line form.
type scontrolRecord struct {
	line  int      // 1-based
	first string   // "JobId=21 JobName=…"
	lines []string // the rest, as printed
}

// splitRecords cuts scontrol's output at each line that starts with "key=",
// which is where a record starts: every other line is indented. Free text with
// a newline may forge such a line, so a reader of jobs must expect it.
func splitRecords(source string, data []byte, key string) ([]scontrolRecord, error) {
	text := string(escapeInvalid(data, false))
	var out []scontrolRecord
	for i, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(line, key+"="):
			out = append(out, scontrolRecord{line: i + 1, first: line})
		case len(out) > 0:
			last := &out[len(out)-1]
			last.lines = append(last.lines, line)
		case strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "No "):
			return nil, &ParseError{
				Source: source, Line: i + 1, Msg: "want a line that starts with " + key + "=",
			}
		}
	}
	return out, nil
}

// splitFields cuts "A=1 B=x y C=3" into pairs; a word without = belongs to the value before it.
func splitFields(line string) [][2]string {
	var out [][2]string
	for word := range strings.SplitSeq(strings.TrimSpace(line), " ") {
		key, value, ok := strings.Cut(word, "=")
		switch {
		case ok && isFieldName(key):
			out = append(out, [2]string{key, value})
		case len(out) > 0:
			out[len(out)-1][1] += " " + word
		}
	}
	for i := range out {
		out[i][1] = strings.TrimRight(out[i][1], " ")
	}
	return out
}

// isFieldName accepts names as scontrol prints them, such as CPUs/Task or ReqB:S:C:T.
func isFieldName(s string) bool {
	if s == "" || len(s) > 40 || s[0] < 'A' || s[0] > 'Z' {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '/', r == ':',
			r == '_', r == '&':
			return false
		}
		return true
	}) < 0
}

// leadingName gives the name that an indented line starts with, and whether it is indented as a field is.
func leadingName(line string) (name string, indent int) {
	trimmed := strings.TrimLeft(line, " ")
	key, _, ok := strings.Cut(trimmed, "=")
	if !ok || !isFieldName(key) {
		return "", 0
	}
	return key, len(line) - len(trimmed)
}

// collect reads the fields of a record that holds no user's text (nodes,
// partitions). Lines in free name a field whose value is the rest of the line.
func (r scontrolRecord) collect(source string, free ...string) (map[string]string, error) {
	out := map[string]string{}
	for i, line := range append([]string{r.first}, r.lines...) {
		pairs := splitFields(line)
		for _, f := range free {
			if rest, ok := strings.CutPrefix(strings.TrimLeft(line, " "), f+"="); ok {
				pairs = [][2]string{{f, strings.TrimRight(rest, " ")}}
			}
		}
		for _, p := range pairs {
			if old, twice := out[p[0]]; twice && old != p[1] {
				return nil, &ParseError{
					Source: source, Line: r.line + i, Msg: p[0] + " stands there twice", Err: ErrAmbiguous,
				}
			}
			out[p[0]] = p[1]
		}
	}
	return out, nil
}
