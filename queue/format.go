package queue

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
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

// Read reads a batch. The name is that of the file in messages. An error is a
// [SyntaxError], [ErrEmpty], or what r returned; no batch comes with it. Every
// job of the batch is valid.
func Read(r io.Reader, name string, format Format) (*Batch, error) {
	return ReadMapped(r, name, format, nil)
}

// ReadMapped is [Read] for a file of the native columns that has names of its own
// for some: columns are ours by the file's.
func ReadMapped(r io.Reader, name string, format Format, columns map[string]string) (*Batch, error) {
	in := newTextGuard(r, name)
	buffered := bufio.NewReaderSize(in, bufferSize)
	if format == Auto {
		format = detect(name, buffered)
	}
	b := newBatchBuilder(name)
	b.given = columns
	var err error
	switch format {
	case JSON:
		err = readJSON(buffered, b)
	case EDL:
		err = readCSV(buffered, in, b, &edlNames)
	case Params:
		err = readCSV(buffered, in, b, &paramsNames)
	case CSV:
		err = readCSV(buffered, in, b, &nativeNames)
	default:
		err = readCSV(buffered, in, b, nil)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return b.batch()
}

// detect takes the format from the end of the file's name, or else from the
// first character. It leaves Auto for a kind of CSV that the header will tell.
func detect(name string, in *bufio.Reader) Format {
	name = strings.ToLower(name)
	for _, suffix := range [...]string{".json", ".jsonl", ".ndjson"} {
		if strings.HasSuffix(name, suffix) {
			return JSON
		}
	}
	if strings.HasSuffix(name, ".csv") {
		return Auto
	}
	return sniff(in)
}

// sniff takes the format from the first character that is not a space: JSON,
// or Auto for a kind of CSV that the header will tell.
func sniff(in *bufio.Reader) Format {
	for n := 1; n <= in.Size(); n++ {
		start, err := in.Peek(n)
		if err != nil {
			return Auto
		}
		switch start[n-1] {
		case ' ', '\t', '\r', '\n':
		case '{', '[':
			return JSON
		default:
			return Auto
		}
	}
	return Auto
}
