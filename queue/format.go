package queue

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/epplan/epplan/internal/textfile"
)

// Format is how a batch is written in a file.
type Format int

// The formats of batch files. Auto takes the end of the file's name, or else
// the first character of the file, and tells the EDL columns by the header.
// Params is EDL without arrivals and deadlines: id, the six coefficients and
// an optional limit; all other columns are ignored.
const (
	Auto Format = iota
	CSV
	JSON
	EDL
	Params
)

// ParseFormat returns the format called auto, csv, json or edl. The name jsonl
// is another one for json, which covers both.
func ParseFormat(name string) (Format, error) {
	switch name {
	case "", "auto":
		return Auto, nil
	case "csv":
		return CSV, nil
	case "json", "jsonl":
		return JSON, nil
	case "edl":
		return EDL, nil
	case "params":
		return Params, nil
	}
	return Auto, fmt.Errorf("unknown format %s, want auto, csv, json or edl", quoted(name))
}

// TableOptions say what a caller knows of a file's columns: names of its own, which may state
// a unit (runtime_s[h]), a header that it lacks, columns to pass over.
type TableOptions = textfile.Options

// Read reads a batch. The name is that of the file in messages. An error is a
// [SyntaxError], [ErrEmpty], or what r returned; no batch comes with it. Every
// job of the batch is valid.
func Read(r io.Reader, name string, format Format) (*Batch, error) {
	return ReadWith(r, name, format, nil)
}

// ReadWith is [Read] of a file of which the caller knows more; nil options are none. Names and
// units are those of the native columns.
func ReadWith(r io.Reader, name string, format Format, options *TableOptions) (*Batch, error) {
	if options == nil {
		options = &TableOptions{}
	}
	in := textfile.Open(r, name, textfile.OnlyText)
	if format == Auto {
		format = detectFormat(name, in)
	}
	b := newBatchBuilder(name, options)
	var err error
	switch format {
	case JSON:
		if len(options.Header) > 0 {
			return nil, fmt.Errorf("%s: JSON names all that it has, want no header for it", Printable(name))
		}
		err = readJSON(in, b)
	case EDL:
		err = readCSV(in, b, &edlNames)
	case Params:
		err = readCSV(in, b, &paramsNames)
	case CSV:
		err = readCSV(in, b, &nativeNames)
	default:
		err = readCSV(in, b, nil)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return b.batch()
}

// detectFormat takes the format from the end of the file's name, or else from the
// first character. It leaves Auto for a kind of CSV that the header will tell.
func detectFormat(name string, in *bufio.Reader) Format {
	name = strings.ToLower(name)
	for _, suffix := range [...]string{".json", ".jsonl", ".ndjson"} {
		if strings.HasSuffix(name, suffix) {
			return JSON
		}
	}
	if strings.HasSuffix(name, ".csv") {
		return Auto
	}
	switch textfile.FirstByte(in) {
	case '{', '[':
		return JSON
	}
	return Auto
}
