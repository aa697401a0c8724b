package gpuexec

import (
	"math"
	"strings"
	"testing"

	"github.com/epplan/epplan/config"
)

// Whatever a site's commands print: it is refused with its line, or each GPU that is made of it has a name that
// tells it from others, and numbers that can be.
func FuzzTables(f *testing.F) {
	for _, text := range []string{
		"00000000:17:00.0,GPU-a,Model X,0,100",
		"0000:17:00.0, GPU-a, X, N/A, [Not Supported]\n\n17:00.1,GPU-b,X,1,-1",
		"17:00.0,GPU-a,X,0,1e999", "a,b", "", "\xff,\xff,\xff,\xff,\xff", "17:00.0,../a,X,99999999999999999999,NaN",
	} {
		f.Add(text)
	}
	table := &config.GPUTable{
		Command: []string{"/bin/list"}, Separator: ",", Columns: []string{"bus", "uuid", "model", "minor", "watts"},
	}
	f.Fuzz(func(t *testing.T, text string) {
		rows, err := rowsOf(table, []byte(text))
		if err != nil {
			if !strings.Contains(err.Error(), "line ") {
				t.Fatalf("the error names no line: %v", err)
			}
			return
		}
		l := &Library{commands: &config.GPUCommands{}, root: "/nonexistent", profiles: config.BuiltinProfiles()}
		for i := range rows {
			for _, column := range table.Columns {
				if v, err := rows[i].number(column); err == nil && (v < 0 || math.IsInf(v, 0)) {
					t.Fatalf("%s is %v in %q", column, v, text)
				}
			}
			d, err := l.open(&rows[i])
			if err == nil && (d == nil || d.id.UUID == "" || d.id.Bus == "" ||
				strings.ContainsAny(d.id.UUID, "/\x00\n")) {
				t.Fatalf("%q opens as %+v", text, d)
			}
		}
	})
}
