package queue

import (
	"bufio"
	"strconv"
	"strings"
)

// Keys of a JSON batch that are not columns.
const (
	keyJobs  = "jobs"
	keyModel = "model"
)

// jsonReader reads the jobs of a JSON document into a builder. Every nesting
// is spelled out, so that no input makes it recurse.
type jsonReader struct {
	lex *lexer
	b   *batchBuilder
	d   jobDraft
	at  [numColumns]Position // of the values of the current job

	keys    [numColumns]string // under which they stand
	heading columnHeading      // of the current value
}

// readJSON reads an object with jobs, an array of jobs, or JSON lines.
func readJSON(in *bufio.Reader, b *batchBuilder) error {
	known := map[string]string{}
	for _, name := range append(nativeNames.known(), keyModel) {
		known[name] = name
	}
	r := &jsonReader{b: b, lex: newLexer(in, Position{File: b.out.Name, Line: 1, Column: 1}, known)}
	b.where = r.position
	for first := true; ; first = false {
		if err := r.lex.next(); err != nil {
			return err
		}
		switch {
		case r.lex.kind == endToken:
			return nil
		case r.lex.kind == '[' && first:
			if err := r.jobs(); err != nil {
				return err
			}
			return r.expectEnd()
		case r.lex.kind != '{':
			return r.lex.unexpected(`{"jobs":[…]}, an array of jobs, or a job on each line`)
		}
		whole, err := r.document(first)
		if err != nil {
			return err
		}
		if whole {
			return r.expectEnd()
		}
	}
}

func (r *jsonReader) expectEnd() error { return r.lex.expect(endToken, "nothing more") }

// document reads an object at the top level after its brace: a job, or, when
// its first key is "jobs", the whole batch.
func (r *jsonReader) document(first bool) (whole bool, err error) {
	start := r.lex.at
	if err := r.lex.next(); err != nil {
		return false, err
	}
	if !first || r.lex.kind != '"' || r.lex.text != keyJobs {
		return false, r.job(start)
	}
	if err := r.lex.expect('[', "an array of jobs"); err != nil {
		return false, err
	}
	if err := r.jobs(); err != nil {
		return false, err
	}
	return true, r.lex.expect('}', `"}" after the jobs`)
}

// jobs reads an array of jobs after its bracket.
func (r *jsonReader) jobs() error {
	for {
		if err := r.lex.next(); err != nil {
			return err
		}
		if r.lex.kind == ']' {
			return nil
		}
		if r.lex.kind != '{' {
			return r.lex.unexpected(`a job, such as {"id":"a","runtime_s":60}`)
		}
		start := r.lex.at
		if err := r.lex.next(); err != nil {
			return err
		}
		if err := r.job(start); err != nil {
			return err
		}
	}
}

// job reads a job, whose first key is the current token.
func (r *jsonReader) job(start Position) error {
	r.d.reset()
	r.at = [numColumns]Position{}
	r.d.job.Pos = start
	model := false
	err := r.object(func(key string, at Position) error {
		if key != keyModel {
			return r.field(key, at)
		}
		if model {
			return &SyntaxError{Pos: at, Msg: "key " + quoted(key) + " is there twice", Want: "each once"}
		}
		model = true
		return r.model()
	})
	if err != nil {
		return err
	}
	return r.b.add(&r.d)
}

// object reads the members of an object from the current token, which is the
// first key or the closing brace. The function is called with the lexer on the
// first token of a value and must leave it on the last.
func (r *jsonReader) object(member func(key string, at Position) error) error {
	for r.lex.kind != '}' {
		key, at := r.lex.text, r.lex.at
		if err := r.lex.next(); err != nil {
			return err
		}
		if err := member(key, at); err != nil {
			return err
		}
		if err := r.lex.next(); err != nil {
			return err
		}
	}
	return nil
}

// nestedObject reads the members of an object whose brace is the current token.
func (r *jsonReader) nestedObject(member func(key string, at Position) error) error {
	if err := r.lex.next(); err != nil {
		return err
	}
	return r.object(member)
}

// field reads a member of a job other than its model.
func (r *jsonReader) field(key string, at Position) error {
	h, ok, problem := r.b.heading(key)
	if problem != nil {
		return r.b.faultAt(at, problem)
	}
	if !ok && key != keyJobs && r.b.options.Ignore {
		r.b.passOver(at, key)
		return r.skip()
	}
	if ok && h.col == colExtra {
		r.b.warnOfKept(at, key, &h)
		return r.extra(h.extra, at)
	}
	if h.col == colOnModel {
		r.heading = h
		return r.onModel(h.of, h.extra, at)
	}
	col := h.col
	if !ok || col >= firstModelColumn {
		return r.unknown(key, at, ok)
	}
	if err := r.noteOnce(col, key, at); err != nil {
		return err
	}
	r.b.warnOfKept(at, key, &h)
	r.heading = h
	if (col == colRuntime || col == colPower) && r.lex.kind == '{' {
		return r.byModel(col)
	}
	if col == colGPUs && r.lex.kind == '{' {
		return r.gpus()
	}
	if col == colUtil && r.lex.kind == '[' {
		return r.series()
	}
	return r.value(col)
}

// skip passes over a value, of which the first token is the current one.
func (r *jsonReader) skip() error {
	for depth := 0; ; {
		switch r.lex.kind {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		default:
		}
		if depth <= 0 {
			return nil
		}
		if err := r.lex.next(); err != nil {
			return err
		}
	}
}

// noteOnce notes where a column's value stands, and refuses a second one.
func (r *jsonReader) noteOnce(col column, key string, at Position) error {
	switch {
	case r.at[col].Line > 0 && r.keys[col] != key:
		return &SyntaxError{
			Pos: at, Msg: "keys " + quoted(r.keys[col]) + " and " + quoted(key) +
				" are both " + nativeNames[col], Want: "one of them",
		}
	case r.at[col].Line > 0:
		return &SyntaxError{Pos: at, Msg: "key " + quoted(key) + " is there twice", Want: "each once"}
	}
	r.at[col], r.keys[col] = r.lex.at, key
	return nil
}

func (r *jsonReader) unknown(key string, at Position, inModel bool) error {
	fault := &SyntaxError{Pos: at, Msg: "unknown key " + quoted(key)}
	if inModel {
		fault.Want = `it in an object "model"`
		return fault
	}
	if key == keyJobs {
		fault.Want = "it first in the file, with nothing else beside it"
		return fault
	}
	fault.Want = unknownWant(key, append(nativeNames[:firstModelColumn:firstModelColumn], keyModel))
	return fault
}

// value reads a plain value of a column; null keeps the default.
func (r *jsonReader) value(col column) error {
	text := strings.TrimSpace(r.lex.text)
	switch r.lex.kind {
	case '"':
		if !isText(col) && col != colGPUs && col != colUtil && !isInf(text) && !isSpelled(col, text) {
			return r.wrongKind(col, expectedInJSON(col))
		}
		if text == "" {
			return nil
		}
	case '0':
		if isText(col) && col != colID {
			return r.wrongKind(col, expectedInJSON(col))
		}
	case 'n', 't', 'f':
		if text == "null" {
			return nil
		}
		return r.wrongKind(col, expectedInJSON(col))
	default:
		return r.wrongKind(col, expectedInJSON(col))
	}
	if problem := r.d.set(col, text, &r.heading); problem != nil {
		return r.b.fault(problem)
	}
	return nil
}

// isSpelled reports whether a string is a value of the column that JSON has no other
// way to write, such as 02:30:00.
func isSpelled(col column, text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err != nil && (timeColumns.has(col) || col == colMem)
}

// isInf is the one number that JSON has to write as a string.
func isInf(text string) bool { return strings.EqualFold(text, "inf") }

func expectedInJSON(col column) string {
	if isText(col) {
		return "a string"
	}
	if col == colUtil {
		return "a list of numbers"
	}
	return "a number"
}

func (r *jsonReader) wrongKind(col column, want string) error {
	return r.lex.fault(nativeNames[col]+" is "+r.lex.describe(), want)
}

// gpus reads counts by GPU model.
func (r *jsonReader) gpus() error {
	r.d.given, r.d.each = r.d.given.with(colGPUs), r.heading.each
	counts := []GPUCount{}
	err := r.nestedObject(func(model string, at Position) error {
		if r.lex.kind != '0' {
			return r.wrongKind(colGPUs, "a number")
		}
		count, problem := parseGPUCount(model, r.lex.text)
		if problem != nil {
			return r.b.faultAt(r.lex.at, problem)
		}
		if len(counts) == maxGPUModels {
			return &SyntaxError{Pos: at, Msg: "one GPU model too many", Want: "at most 64"}
		}
		counts = append(counts, count)
		return nil
	})
	if err == nil && len(counts) == 0 {
		return r.b.fault(newFieldError(colGPUs, "is an empty object", `counts such as {"V100":2,"*":4}`))
	}
	r.d.job.GPUs = counts
	return err
}

// byModel reads run times or powers by GPU model.
func (r *jsonReader) byModel(of column) error {
	count := 0
	err := r.nestedObject(func(model string, at Position) error {
		count++
		return r.onModel(of, strings.TrimSpace(model), at)
	})
	if err == nil && count == 0 {
		return r.b.fault(newFieldError(of, "is an empty object", `numbers such as {"V100":60,"A100":40}`))
	}
	return err
}

// onModel reads the run time or power on one GPU model; null is none.
func (r *jsonReader) onModel(of column, model string, at Position) error {
	if problem := modelColumnFault(of, model); problem != nil {
		return r.b.faultAt(at, problem)
	}
	if r.lex.kind == 'n' {
		return nil
	}
	if r.lex.kind != '0' {
		return r.wrongKind(of, "a number")
	}
	if problem := r.d.setOn(of, model, strings.TrimSpace(r.lex.text), &r.heading); problem != nil {
		return r.b.faultAt(r.lex.at, problem)
	}
	return nil
}

// series reads the array of a profile.
func (r *jsonReader) series() error {
	r.d.given = r.d.given.with(colUtil)
	series := r.d.ensureProfile().UtilPct
	for {
		if err := r.lex.next(); err != nil {
			return err
		}
		if r.lex.kind == ']' {
			return nil
		}
		if r.lex.kind != '0' {
			return r.wrongKind(colUtil, "numbers")
		}
		value, problem := parseNumber(colUtil, r.lex.text)
		if problem != nil {
			return r.b.faultAt(r.lex.at, problem)
		}
		if len(series) == maxSlots {
			return r.b.faultAt(r.lex.at,
				newFieldError(colUtil, "has one slot too many", "at most "+strconv.Itoa(maxSlots)))
		}
		series = append(series, value)
		r.d.ensureProfile().UtilPct = series
	}
}

// model reads the object with a job's coefficients.
func (r *jsonReader) model() error {
	if r.lex.kind == 'n' {
		return nil
	}
	if r.lex.kind != '{' {
		return r.lex.unexpected("an object with the model's coefficients")
	}
	start := r.lex.at
	err := r.nestedObject(func(key string, at Position) error {
		col, ok := nativeNames.find(key)
		if !ok || col < firstModelColumn {
			return &SyntaxError{
				Pos: at, Msg: "unknown key " + quoted(key) + " in a model",
				Want: "one of " + strings.Join(nativeNames[firstModelColumn:], ", "),
			}
		}
		if err := r.noteOnce(col, key, at); err != nil {
			return err
		}
		return r.value(col)
	})
	if err == nil && !r.d.given.hasAny(modelColumns) {
		return &SyntaxError{
			Pos: start, Msg: "the job's model is empty", Want: "all of " + nativeNames.model(),
		}
	}
	return err
}

// extra reads an x_ member: a string, a number, true, false or null.
func (r *jsonReader) extra(key string, at Position) error {
	name, problem := r.b.extraName(key)
	if problem != nil {
		return r.b.faultAt(at, problem)
	}
	for _, f := range r.d.job.Extra {
		if f.Name == name {
			return &SyntaxError{Pos: at, Msg: "key " + quoted(name) + " is there twice", Want: "each once"}
		}
	}
	value := strings.ReplaceAll(r.lex.text, "\r\n", "\n")
	switch r.lex.kind {
	case '"', '0':
	case 'n', 't', 'f':
		if value == "null" {
			return nil
		}
	default:
		return r.lex.unexpected("a string or a number for " + quoted(name))
	}
	if problem := r.d.addExtra(name, value); problem != nil {
		return r.b.faultAt(r.lex.at, problem)
	}
	return nil
}

// position is that of a column's value in the current job, or of the job.
func (r *jsonReader) position(col column) Position {
	if col < numColumns && r.at[col].Line > 0 {
		return r.at[col]
	}
	return r.d.job.Pos
}
