// Package jsonfile reads instances of sharing from JSON, with defaults for fields that a file
// may leave out, and says where a file is wrong.
package jsonfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/epplan/epplan/planner/sharing"
)

// maxFile is how long an instance's file may be.
const maxFile = 256 << 20

// instanceFile is an instance as its file has it. What may be left out is a
// pointer, or nil where it is.
type instanceFile struct {
	Name      *string        `json:"name"`
	Mix       *string        `json:"mix"`
	Seed      *jsonNumber    `json:"seed"`
	BaseW     *jsonNumber    `json:"p_gs_w"`
	WPerMHz   *jsonNumber    `json:"alpha_w_per_mhz"`
	Beta      *jsonNumber    `json:"beta"`
	MinMHz    *jsonNumber    `json:"f_min_mhz"`
	MaxMHz    *jsonNumber    `json:"f_max_mhz"`
	StepMHz   *jsonNumber    `json:"delta_f_mhz"`
	Levels    []jsonNumber   `json:"f_levels_mhz"`
	SlotS     *jsonNumber    `json:"slot_s"`
	Slots     *jsonNumber    `json:"n_slots"`
	SLA       *jsonNumber    `json:"sla"`
	Servers   []serverFile   `json:"servers"`
	Tasks     []taskFile     `json:"tasks"`
	Reference jsontext.Value `json:"reference"`
}

type serverFile struct {
	ID       *jsonName    `json:"id"`
	StaticW  *jsonNumber  `json:"p_static_w"`
	OtherW   *jsonNumber  `json:"p_other_w"`
	GPUMemGB []jsonNumber `json:"gpu_mem_gb"`
}

type taskFile struct {
	ID      *jsonName    `json:"id"`
	Arrival *jsonNumber  `json:"arrival_s"`
	MemGB   *jsonNumber  `json:"mem_gb"`
	GPUs    *jsonNumber  `json:"v_gpus"`
	Kappa   *jsonNumber  `json:"kappa"`
	MeanPct *jsonNumber  `json:"mean_util_pct"`
	UtilPct []jsonNumber `json:"util_pct"`
}

// jsonNumber is a number of the file; null isn't one.
type jsonNumber float64

// UnmarshalJSONFrom reads a number.
func (n *jsonNumber) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	token, err := d.ReadToken()
	if err != nil {
		return err
	}
	if token.Kind() != '0' {
		return fmt.Errorf("is %s, want a number", describeToken(token))
	}
	x, err := token.Float()
	if err != nil {
		return fmt.Errorf("is %s, want a number below 1.8e308", describeToken(token))
	}
	*n = jsonNumber(x)
	return nil
}

// jsonName is what a server or a task is called: a text or a number.
type jsonName string

// UnmarshalJSONFrom reads a text or a number.
func (n *jsonName) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	token, err := d.ReadToken()
	if err != nil {
		return err
	}
	if token.Kind() != '0' && token.Kind() != '"' {
		return fmt.Errorf("is %s, want a number or a text", describeToken(token))
	}
	*n = jsonName(token.String())
	return nil
}

func describeToken(token jsontext.Token) string {
	switch token.Kind() {
	case '"':
		return fmt.Sprintf("%.40q", token.String())
	case '{', '[':
		return describeKind(token.Kind())
	default:
		return token.String()
	}
}

func describeKind(kind jsontext.Kind) string {
	switch kind {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a text"
	case '0':
		return "a number"
	default:
		return kind.String()
	}
}

// ReadInstance reads an instance in the JSON of data/cats/instances; file is its name
// for messages. Servers and tasks are numbered in the order of the file. What
// the file may leave out: names, arrivals (0), p_other_w (0), v_gpus (1), sla
// (1.2), kappa (the sla) and delta_f_mhz (the least distance of two levels).
// What else it says of itself, such as n_slots and mean_util_pct, must be so;
// reference isn't looked at. An error says where: the line, the path of the
// field, and what was expected.
func ReadInstance(r io.Reader, file string) (*sharing.Instance, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s: is longer than %d MiB, want an instance", file, maxFile>>20)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, fmt.Errorf("%s: is empty, want an instance as a JSON object", file)
	}
	var f instanceFile
	if err := json.Unmarshal(data, &f, json.RejectUnknownMembers(true)); err != nil {
		return nil, locateError(data, file, err)
	}
	in, err := f.instance()
	if fault, ok := errors.AsType[*fieldError](err); ok {
		return nil, fmt.Errorf("%s:%d: %s", file, lineAt(data, offsetOf(data, fault.at)), fault.Error())
	}
	return in, err
}

// locateError says where in the file an error of the JSON's reader is.
func locateError(data []byte, file string, err error) error {
	if semantic, ok := errors.AsType[*json.SemanticError](err); ok {
		line, at := lineAt(data, semantic.ByteOffset), fieldPath(semantic.JSONPointer)
		switch {
		case errors.Is(err, json.ErrUnknownName):
			return fmt.Errorf("%s:%d: %s is no field of an instance, want one of those in "+
				"lab/docs/consolidation.md", file, line, at)
		case semantic.Err != nil:
			return fmt.Errorf("%s:%d: %s %w", file, line, at, semantic.Err)
		}
		return fmt.Errorf("%s:%d: %s is %s, want %s", file, line, at, describeKind(semantic.JSONKind),
			expectedKind(semantic))
	}
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return fmt.Errorf("%s:%d: %s: %w, want JSON", file, lineAt(data, syntactic.ByteOffset),
			fieldPath(syntactic.JSONPointer), syntactic.Err)
	}
	return fmt.Errorf("%s: %w", file, err)
}

// expectedKind returns the kind of value that could have been read.
func expectedKind(err *json.SemanticError) string {
	switch kind := err.GoType.Kind().String(); kind {
	case "slice":
		return "a list"
	case "struct":
		return "an object"
	case "string":
		return "a text"
	default:
		return kind
	}
}

// lineAt returns the line of an offset, from 1.
func lineAt(data []byte, offset int64) int {
	offset = min(max(offset, 0), int64(len(data)))
	for offset < int64(len(data)) &&
		(data[offset] == '\n' || data[offset] == ' ' || data[offset] == '\t' || data[offset] == '\r') {
		offset++ // offsets are those of the end of what came before
	}
	return 1 + bytes.Count(data[:offset], []byte("\n"))
}

// offsetOf returns the offset at which a value, or the name of a field, ends or an
// object or a list begins; 0 where it isn't there.
func offsetOf(data []byte, at jsontext.Pointer) int64 {
	d := jsontext.NewDecoder(bytes.NewReader(data))
	for {
		if _, err := d.ReadToken(); err != nil {
			return 0
		}
		if d.StackPointer() == at {
			return d.InputOffset() - 1
		}
	}
}

// fieldPath returns a JSON pointer as one would write it in a program: tasks[3].mem_gb.
func fieldPath(at jsontext.Pointer) string {
	var b strings.Builder
	for token := range at.Tokens() {
		switch {
		case strings.Trim(token, "0123456789") == "":
			b.WriteString("[" + token + "]")
		case b.Len() == 0:
			b.WriteString(token)
		default:
			b.WriteString("." + token)
		}
	}
	if b.Len() == 0 {
		return "the instance"
	}
	return b.String()
}
