package slurm

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// TRES holds trackable resources by name: "cpu", "mem" (bytes), "node",
// "billing", "gres/gpu", "gres/gpu:h200".
type TRES map[string]float64

// GPUs gives the number of whole GPUs: gres/gpu, or the sum over its types when only those are named.
func (t TRES) GPUs() int {
	if n, ok := t["gres/gpu"]; ok {
		return int(n)
	}
	sum := 0.0
	for name, n := range t {
		if strings.HasPrefix(name, "gres/gpu:") {
			sum += n
		}
	}
	return int(sum)
}

// ParseTRES reads "cpu=4,mem=8G,gres/gpu:h200=2"; memory comes back in bytes.
func ParseTRES(text string) (TRES, error) {
	text = strings.TrimSpace(text)
	if isUnset(text) {
		return TRES{}, nil
	}
	out := TRES{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(part, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("tres %q: want name=count", Printable(part, 60))
		}
		if isNoNumber(value) {
			continue // it isn't known
		}
		n, err := tresCount(value, name == "mem" || name == "vmem")
		if err != nil {
			return nil, fmt.Errorf("tres %q: %w", Printable(part, 60), err)
		}
		out[name] = n
	}
	return out, nil
}

// tresCount reads a count with Slurm's suffix. Bare memory counts MiB.
func tresCount(text string, memory bool) (float64, error) {
	if memory && text != "" && strings.IndexFunc(text, isNotDigit) < 0 {
		text += "M"
	}
	scale := 1.0
	if text != "" {
		if i := strings.IndexByte("KMGTPE", text[len(text)-1]); i >= 0 {
			scale = math.Pow(1024, float64(i+1))
			text = text[:len(text)-1]
		}
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || n < 0 || n > 1e18 {
		return 0, fmt.Errorf("%q is not a count", text)
	}
	return n * scale, nil
}

// Gres is one generic resource: of a node, of a job, or of a job on one node.
type Gres struct {
	Name  string // "gpu", "shard", "mps"
	Type  string // "h200", or empty
	Count int64
	Index []int // positions in the node's gres.conf list, not minor numbers; nil when not stated
}

// MaxGresIndex bounds the position of a device on its node.
const MaxGresIndex = 1024

// ParseGres reads "gpu:h200:2(IDX:0-1),shard:2(IDX:0)", "gres/gpu:4",
// "gres:gpu:1", "gpu:tesla:2(S:0-1)", "shard:0(IDX:N/A)" and "shard:(null):0(IDX:N/A)".
func ParseGres(text string) ([]Gres, error) {
	text = strings.TrimSpace(text)
	if isUnset(text) {
		return nil, nil
	}
	var out []Gres
	for _, part := range splitOutsideParens(text) {
		g, err := parseOneGres(part)
		if err != nil {
			return nil, fmt.Errorf("gres %q: %w", Printable(part, 60), err)
		}
		out = append(out, g)
	}
	return out, nil
}

// splitOutsideParens splits at commas that are not inside parentheses.
func splitOutsideParens(text string) []string {
	var out []string
	depth, start := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, text[start:i])
				start = i + 1
			}
		}
	}
	return append(out, text[start:])
}

// noType is what scontrol prints in the place of a type that a device doesn't have.
const noType = ":(null):"

func parseOneGres(text string) (Gres, error) {
	text = strings.Replace(text, noType, ":", 1)
	head, note, hasNote := strings.Cut(text, "(")
	g := Gres{Count: 1}
	head = strings.TrimPrefix(strings.TrimPrefix(head, "gres/"), "gres:")
	words := strings.Split(strings.Replace(head, "=", ":", 1), ":")
	if len(words) > 1 {
		if n, err := tresCount(words[len(words)-1], false); err == nil {
			g.Count = int64(n)
			words = words[:len(words)-1]
		}
	}
	g.Name = words[0]
	if g.Name == "" || len(words) > 2 {
		return Gres{}, errors.New("want name[:type][:count]")
	}
	if len(words) == 2 {
		g.Type = words[1]
	}
	if !hasNote {
		return g, nil
	}
	note, ok := strings.CutSuffix(note, ")")
	if !ok || strings.ContainsAny(note, "()") {
		return Gres{}, errors.New("unbalanced parentheses")
	}
	index, isIndex := strings.CutPrefix(note, "IDX:")
	if !isIndex || index == "N/A" || index == "" {
		return g, nil
	}
	var err error
	g.Index, err = ParseIndices(index)
	if err == nil && len(g.Index) > 0 && g.Index[len(g.Index)-1] >= MaxGresIndex {
		err = fmt.Errorf("device position %d: want below %d", g.Index[len(g.Index)-1], MaxGresIndex)
	}
	return g, err
}
