package queue

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"testing"
)

func TestACoefficientThatMayBeLeftOutIs0ThenAndNotWritten(t *testing.T) {
	left := firstModelColumn // the first coefficient, which no model does without
	all := neededColumns
	t.Cleanup(func() { neededColumns = all })
	others := nativeNames[left+1:]
	row := strings.Repeat(",0.5", len(others)) + "\n"
	model := make([]string, 0, len(others))
	for _, name := range others {
		model = append(model, strconv.Quote(name)+":0.5")
	}
	for name, text := range map[string]string{
		"no column":  "id," + strings.Join(others, ",") + "\na" + row,
		"empty cell": "id," + strings.Join(nativeNames[left:], ",") + "\na," + row,
		"JSON":       `[{"id":"a","model":{` + strings.Join(model, ",") + "}}]",
	} {
		format := CSV
		if name == "JSON" {
			format = JSON
		}
		neededColumns = all
		if _, err := Read(strings.NewReader(text), "batch", format); err == nil {
			t.Errorf("%s: read though the coefficient is needed", name)
		}
		neededColumns = all &^ (1 << left)
		b, err := Read(strings.NewReader(text), "batch", format)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := *coefficient(b.Jobs[0].Model, left); got != 0 {
			t.Errorf("%s: %v, want 0", name, got)
		}
		for _, write := range []func(io.Writer, *Batch) error{WriteCSV, WriteEDL, WriteJSON} {
			var out bytes.Buffer
			if err := write(&out, b); err != nil || strings.Contains(out.String(), nativeNames[left]) ||
				strings.Contains(out.String(), edlNames[left]) {
				t.Errorf("%s: written as %q (%v), want no %s", name, out.String(), err, nativeNames[left])
			}
		}
	}
}
