package queue

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

func TestACoefficientThatMayBeLeftOutIs0ThenAndNotWritten(t *testing.T) {
	last := numColumns - 1
	all := neededColumns
	t.Cleanup(func() { neededColumns = all })
	without := func(rows string) string { return strings.ReplaceAll(rows, ","+nativeNames[last], "") }
	header := "id," + strings.Join(nativeNames[firstModelColumn:], ",")
	for name, text := range map[string]string{
		"no column":  without(header) + "\na,1,1,1,1,0.5\n",
		"empty cell": header + "\na,1,1,1,1,0.5,\n",
		"JSON":       `[{"id":"a","model":{"p0_w":1,"gamma_w":1,"c_w":1,"d_s":1,"delta":0.5}}]`,
	} {
		format := CSV
		if name == "JSON" {
			format = JSON
		}
		neededColumns = all
		if _, err := Read(strings.NewReader(text), "batch", format); err == nil {
			t.Errorf("%s: read though the coefficient is needed", name)
		}
		neededColumns = all &^ (1 << last)
		b, err := Read(strings.NewReader(text), "batch", format)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := *coefficient(b.Jobs[0].Model, last); got != 0 {
			t.Errorf("%s: %v, want 0", name, got)
		}
		for _, write := range []func(io.Writer, *Batch) error{WriteCSV, WriteEDL, WriteJSON} {
			var out bytes.Buffer
			if err := write(&out, b); err != nil || strings.Contains(out.String(), nativeNames[last]) ||
				strings.Contains(out.String(), edlNames[last]) {
				t.Errorf("%s: written as %q (%v), want no %s", name, out.String(), err, nativeNames[last])
			}
		}
	}
}
