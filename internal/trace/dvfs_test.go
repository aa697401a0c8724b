package trace_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/trace"
	"github.com/epplan/epplan/queue"
)

const header = "app,core_mhz,mem_mhz,time_ms,power_w\n"

func TestMeasuredTableIsReadInOrderAndInSeconds(t *testing.T) {
	in := "\ufeffpower_w, app,time_ms,mem_mhz,core_mhz\r\n100,b,2000,877,1380\r\n\r\n90,a,500,877,1005\r\n" +
		"80,b,2500,877,1005"
	apps, err := trace.ReadDVFS(strings.NewReader(in), "t.csv")
	if err != nil {
		t.Fatal(err)
	}
	if len(apps) != 2 || apps[0].App != "b" || apps[1].App != "a" || len(apps[0].Samples) != 2 {
		t.Fatalf("applications %+v", apps)
	}
	want := dvfsmodel.Sample{Core: 1380, Mem: 877, Time: 2, Power: 100}
	if got := apps[0].Samples[0]; got != want {
		t.Errorf("sample %+v, want %+v", got, want)
	}
}

func TestClocksAndCapsMayBeMissingAndColumnsHaveOtherNames(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want dvfsmodel.Sample
	}{
		"caps": {
			"workload,cap_w,epoch_s,power_w\na,150,3,90\n", dvfsmodel.Sample{Cap: 150, Time: 3, Power: 90},
		},
		"no memory": {"app,core_mhz,time_s,power_w\na,900,3,90\n", dvfsmodel.Sample{Core: 900, Time: 3, Power: 90}},
		"empty": {
			"app,core_mhz,mem_mhz,cap_w,time_ms,power_w\na,,877,,3000,90\n",
			dvfsmodel.Sample{Mem: 877, Time: 3, Power: 90},
		},
		"energy beside power": {
			"app,core_mhz,cap_w,time_s,energy_j,mean_power_w\na,900,150,3,1,90\n",
			dvfsmodel.Sample{Core: 900, Cap: 150, Time: 3, Power: 90},
		},
		"energy alone": {
			"app,core_mhz,time_s,energy_j\na,900,3,270\n", dvfsmodel.Sample{Core: 900, Time: 3, Power: 90},
		},
	} {
		t.Run(name, func(t *testing.T) {
			apps, err := trace.ReadDVFS(strings.NewReader(c.in), "t.csv")
			if err != nil {
				t.Fatal(err)
			}
			if got := apps[0].Samples[0]; got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

func TestBadTableIsAnErrorWithItsPosition(t *testing.T) {
	for name, c := range map[string]struct {
		in           string
		line, column int
		says         string
	}{
		"empty":            {"", 0, 0, "want a header"},
		"header only":      {header, 1, 0, "no measurements"},
		"unknown column":   {"app,core_mhz,mem_mhz,time_ms,power_w,volts\na,1,1,1,1,1\n", 1, 6, "volts"},
		"missing column":   {"app,core_mhz,mem_mhz,time_ms\na,1,1,1\n", 1, 0, "power_w"},
		"repeated column":  {"app,app,mem_mhz,time_ms,power_w\n", 1, 2, "twice"},
		"too few fields":   {header + "a,1,1,1\n", 2, 0, "cells in this row: 4"},
		"negative":         {header + "a,1,1,-1,1\n", 2, 4, "time_ms"},
		"zero":             {header + "a,0,1,1,1\n", 2, 2, "core_mhz"},
		"not a number":     {header + "a,1,1,1,NaN\n", 2, 5, "NaN"},
		"infinite":         {header + "a,1,1,1,inf\n", 2, 5, "inf"},
		"out of bounds":    {header + "a,1,1,1e300,1\n", 2, 4, "from 1e-12 to 1e+12"},
		"next to nothing":  {header + "a,1,1,1,1e-300\n", 2, 5, "from 1e-12 to 1e+12"},
		"text":             {header + "a,1,fast,1,1\n", 2, 3, "fast"},
		"no name":          {header + ",1,1,1,1\n", 2, 1, "name"},
		"same setting":     {header + "a,1,1,1,1\nb,1,1,1,1\na,1,1,2,2\n", 4, 0, "line 2"},
		"same cap":         {"app,cap_w,time_s,power_w\na,150,1,1\na,150,2,1\n", 3, 0, "a at –/–@150W was"},
		"two times":        {"app,core_mhz,time_s,time_ms,power_w\na,1,1,1,1\n", 1, 4, "are both time_s"},
		"binary":           {"\x00\x01\xff\n\x00", 1, 0, "is not text"},
		"long line":        {header + "a,1,1,1,1\n" + strings.Repeat("x", 2<<20), 3, 0, "1 MiB"},
		"long header line": {strings.Repeat("x", 2<<20), 1, 0, "1 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := trace.ReadDVFS(strings.NewReader(c.in), "t.csv")
			var at *queue.SyntaxError
			if !errors.As(err, &at) {
				t.Fatalf("error %v, want a SyntaxError", err)
			}
			if at.Pos.File != "t.csv" || at.Pos.Line != c.line ||
				c.column > 0 && at.Pos.Column != byteColumn(c.in, c.line, c.column) {
				t.Errorf("position %v, want field %d of line %d", at.Pos, c.column, c.line)
			}
			if !strings.Contains(err.Error(), c.says) || len(err.Error()) > 400 {
				t.Errorf("message %.500q, want it short and with %q", err, c.says)
			}
		})
	}
}

// byteColumn returns where a field of a line begins, in bytes.
func byteColumn(text string, line, field int) int {
	column := 1
	for _, cell := range strings.Split(strings.Split(text, "\n")[line-1], ",")[:field-1] {
		column += len(cell) + 1
	}
	return column
}

type brokenReader struct{}

var errBroken = errors.New("disk on fire")

func (brokenReader) Read([]byte) (int, error) { return 0, errBroken }

func TestReadErrorsKeepTheirCauseAndName(t *testing.T) {
	_, err := trace.ReadDVFS(io.MultiReader(strings.NewReader(header), brokenReader{}), "t.csv")
	if !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "t.csv") {
		t.Errorf("error %v, want the cause and the name", err)
	}
}

func FuzzReadDVFSReturnsSamplesOrAnError(f *testing.F) {
	f.Add(header + "a,1,1,1,1\n")
	f.Add("app\n")
	f.Fuzz(func(t *testing.T, in string) {
		apps, err := trace.ReadDVFS(strings.NewReader(in), "t.csv")
		if err != nil {
			return
		}
		for _, a := range apps {
			for _, s := range a.Samples {
				if !(s.Core >= 0 && s.Mem >= 0 && s.Cap >= 0 && s.Time >= 0 && s.Power > 0) || a.App == "" {
					t.Errorf("application %q has sample %+v", a.App, s)
				}
			}
		}
	})
}
