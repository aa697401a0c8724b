package joblog_test

import (
	"reflect"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/trace/joblog"
)

// inUTF16 returns a text as PowerShell writes it.
func inUTF16(text string) string {
	var out strings.Builder
	for _, unit := range utf16.Encode([]rune("\ufeff" + strings.ReplaceAll(text, "\n", "\r\n"))) {
		out.Write([]byte{byte(unit), byte(unit >> 8)})
	}
	return out.String()
}

func TestLogsInUTF16AreThoseInUTF8(t *testing.T) {
	jobs := func(text string, read func(string, joblog.Visit) (*joblog.Tally, error)) (all []record.HistoryJob) {
		t.Helper()
		tally, err := read(text, func(p *record.HistoryJob) error {
			all = append(all, *p)
			return nil
		})
		if err != nil || tally.SkippedLines() > 0 || len(all) == 0 {
			t.Fatalf("%d jobs, %v, %+v", len(all), err, tally)
		}
		return all
	}
	for text, read := range map[string]func(string, joblog.Visit) (*joblog.Tally, error){
		strings.ReplaceAll(sacctOfABatch, "train", "größer"): func(
			text string, v joblog.Visit,
		) (*joblog.Tally, error) {
			return joblog.ReadSacct(strings.NewReader(text), "log", &joblog.Options{}, v)
		},
		"; UnixStartTime: 1500000000\n1 43603 0 628 16 -1 -1 16 7200 -1 1 4 168 -1 -1 10 -1 -1\n": func(
			text string, v joblog.Visit,
		) (*joblog.Tally, error) {
			return joblog.ReadSWF(strings.NewReader(text), "log", &joblog.Options{}, v)
		},
	} {
		if got, want := jobs(inUTF16(text), read), jobs(text, read); !reflect.DeepEqual(got, want) {
			t.Errorf("\n got %+v\nwant %+v", got, want)
		}
	}
}
