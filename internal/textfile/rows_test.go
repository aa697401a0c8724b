package textfile_test

import (
	"encoding/csv"
	"errors"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"github.com/epplan/epplan/internal/textfile"
)

// allRows reads until the first error.
func allRows(r io.Reader) (rows [][]string, err error) {
	in := textfile.NewRows(textfile.Open(r, "f.csv", textfile.OnlyText), "f.csv")
	for {
		row, err := in.Read()
		if err != nil {
			return rows, err
		}
		rows = append(rows, append([]string(nil), row...))
	}
}

// utf16Bytes encodes a text as UTF-16.
func utf16Bytes(text string, big bool) string {
	var out strings.Builder
	for _, unit := range utf16.Encode([]rune(text)) {
		low, high := byte(unit), byte(unit>>8)
		if big {
			low, high = high, low
		}
		out.Write([]byte{low, high})
	}
	return out.String()
}

// repeated reads a text again and again, and counts.
type repeated struct {
	text string
	read int
}

func (r *repeated) Read(p []byte) (int, error) {
	n := 0
	for n+len(r.text) <= len(p) {
		n += copy(p[n:], r.text)
	}
	r.read += n
	return n, nil
}

func TestARowOfAnyFileIsBoundedAndItsErrorNamesItsPlace(t *testing.T) {
	for name, c := range map[string]struct{ start, repeat, want string }{
		"header":      {"", "x", `f.csv:1:1: line is longer than 1 MiB, want one row a line, every opened " closed`},
		"cell":        {"a,b\n1,", "x", "f.csv:2:1: line is longer than 1 MiB"},
		"cells":       {"a,b\n1,", "x,", "f.csv:2:1: line is longer than 1 MiB"},
		"quoted cell": {"a,b\n1,\"", "x\n", "f.csv:2:1: record is longer than 1 MiB"},
		"UTF-16":      {"\xff\xfea\x00,\x00b\x00\n\x001\x00,\x00", "x\x00", "f.csv:2:1: line is longer than 1 MiB"},
	} {
		rest := &repeated{text: c.repeat}
		_, err := allRows(io.MultiReader(strings.NewReader(c.start), rest))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || rest.read > 5<<20 {
			t.Errorf("%s: error %v after %d bytes, want %q", name, err, rest.read, c.want)
		}
	}
}

func TestATableIsTheSameInEveryEncodingAndWithEveryLineEnd(t *testing.T) {
	const text = "name;n\n\"Größe \"\"x\"\"; 𝄞\" ;\t 1\n\n ü;2"
	want := [][]string{{"name", "n"}, {`Größe "x"; 𝄞`, "1"}, {"ü", "2"}}
	for _, end := range []string{"\n", "\r\n", "\r"} {
		ended := strings.ReplaceAll(text, "\n", end)
		for name, bytes := range map[string]string{
			"UTF-8": ended, "UTF-8 with a mark": "\ufeff" + ended,
			"UTF-16": utf16Bytes(ended, false), "UTF-16 the other way": utf16Bytes(ended, true),
			"UTF-16 with a mark":               utf16Bytes("\ufeff"+ended, false),
			"UTF-16 the other way with a mark": utf16Bytes("\ufeff"+ended, true),
			"stated":                           "sep=;" + end + ended, "stated in quotes": `"sep=;"` + end + ended,
			"stated and written again": "SEP=;;" + end + ended,
			"after a blank line":       end + " " + end + ended,
		} {
			for _, in := range []io.Reader{strings.NewReader(bytes), iotest.OneByteReader(strings.NewReader(bytes))} {
				if rows, err := allRows(in); !errors.Is(err, io.EOF) || !reflect.DeepEqual(rows, want) {
					t.Errorf("%s, ends %q: %q, %v", name, end, rows, err)
				}
			}
		}
	}
}

func TestTheHeaderTellsTheSeparator(t *testing.T) {
	for text, want := range map[string][]string{
		"a,b\n": {"a", "b"}, "a;b\n": {"a", "b"}, "a\tb\tc d\n": {"a", "b", "c d"}, "a|b": {"a", "b"},
		"a;\"x,y,z\";c\n": {"a", "x,y,z", "c"}, "a\n": {"a"}, "sep=|\na,b|c\n": {"a,b", "c"},
		"sep=\t\na\t\tb\t\n": {"a", "", "b", ""},
	} {
		if rows, err := allRows(strings.NewReader(text)); !errors.Is(err, io.EOF) ||
			!reflect.DeepEqual(rows[0], want) {
			t.Errorf("%q: %q, %v", text, rows, err)
		}
	}
}

func TestWhatIsNoTextIsRefusedWithWhatToDo(t *testing.T) {
	for text, want := range map[string]string{
		"a,b\n\x00":                               "f.csv:2:1: byte 0x00 is not text, want UTF-8 or UTF-16 text",
		"a,b\nJ\xf6rg,1\n":                        "f.csv:2:2: byte 0xf6 is not UTF-8, want UTF-8 or UTF-16",
		"\xff\xfea\x00,\x00b":                     "f.csv:1:3: the file ends within a character of UTF-16",
		"\xff\xfea\x00\n\x00\x00":                 "f.csv:2:1: the file ends within a character of UTF-16",
		"\xff\xfea\x00\n\x00\x00\xd8b\x00":        "f.csv:2:1: half a character of UTF-16, want UTF-8 or UTF-16",
		"\xff\xfe\x00\x00a\x00\x00\x00":           "f.csv:1:1: byte 0x00 is not text",
		"a,b\n1,x\"y\n":                           `f.csv:2:4: a " inside a cell that does not begin with one`,
		"a,b\n\"1\n2\"x,\n":                       `f.csv:3:2: a quoted cell that does not end with "`,
		"a,b\n1,2\n\"no end\n\n":                  `f.csv:4:1: a quoted cell that does not end with "`,
		"sep=:\na:b\n":                            `f.csv:1:1: separator ":", want sep= and a comma, a semicolon, a tab or |`,
		strings.Repeat("a,b\n", 40_000) + "\xc3(": "f.csv:40001:1: byte 0xc3 is not UTF-8",
	} {
		if _, err := allRows(strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
	broken := errors.New("broken")
	if _, err := allRows(io.MultiReader(strings.NewReader("a\n1\n"),
		iotest.ErrReader(broken))); !errors.Is(err, broken) || err.Error() != "f.csv: broken" {
		t.Error(err)
	}
}

func TestOddBytesPassWhereLogsHoldThem(t *testing.T) {
	text, err := io.ReadAll(textfile.Open(strings.NewReader("\ufeffJ\xf6rg\r\n"), "f", textfile.AnyButZero))
	if err != nil || string(text) != "J\xf6rg\r\n" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err = io.ReadAll(textfile.Open(strings.NewReader("J\x00"), "f", textfile.AnyButZero)); err == nil {
		t.Error("a zero byte passed")
	}
	text, err = io.ReadAll(textfile.Open(strings.NewReader("J\x00\xff"), "f", textfile.AnyBytes))
	if err != nil || string(text) != "J\x00\xff" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestARowIsReadAsSoonAsItIsThere(t *testing.T) {
	r, w := io.Pipe()
	defer func() { _ = w.Close() }()
	go func() { _, _ = w.Write([]byte("a;b\n1;2\n")) }()
	in, err := textfile.OpenTable(r, "f", "a", textfile.OnlyText)
	if err == nil {
		err = in.Next()
	}
	if err != nil || in.Text("B") != "2" {
		t.Errorf("%v, %q", err, in.Row)
	}
}

func TestANameThatComesTwiceIsNamedAsItIsWritten(t *testing.T) {
	for text, want := range map[string]string{
		"a,b,a\n":           `f:1:5: column "a" is there twice, want each once`,
		"a,Job ID,job_id\n": `f:1:10: columns "Job ID" and "job_id" have the same name, want each once`,
		"":                  "f: is empty, want a header with a",
		"a,b\n1\n":          "f:2:1: cells in this row: 1, want 2 as in the header",
	} {
		in, err := textfile.OpenTable(strings.NewReader(text), "f", "a", textfile.OnlyText)
		if err == nil {
			err = in.Next()
		}
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestAHeaderThatIsGivenTellsTheSeparatorByItsLength(t *testing.T) {
	for text, want := range map[string]string{
		"a;3600,5;V100\n": "3600,5", "a,3600,V100\n": "3600", "sep=|\na|1,2;3|b\n": "1,2;3",
		"a;3,5;b,c\n": `f:1:1: cells may be separated by ',' or ';'`,
	} {
		rows := textfile.NewRows(textfile.Open(strings.NewReader(text), "f", textfile.OnlyText), "f")
		in, err := textfile.NewTable(rows, []string{"id", "runtime_s", "-"}, "")
		if err == nil {
			err = in.Next()
		}
		if got := in.Text("runtime_s"); err == nil && got != want ||
			err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// TestRowsAreThoseOfEncodingCSV draws short texts of the characters that matter, and reads them both ways.
func TestRowsAreThoseOfEncodingCSV(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	accepted := 0
	for range 5000 {
		var text strings.Builder
		for range 1 + r.IntN(14) {
			text.WriteString([]string{"a", "ü", ",", `"`, `""`, "\n", "\r\n", " ", `,"`, `",`}[r.IntN(10)])
		}
		theirs := csv.NewReader(strings.NewReader(text.String()))
		theirs.TrimLeadingSpace, theirs.FieldsPerRecord = true, -1
		all, wrong := theirs.ReadAll()
		var want [][]string
		for _, row := range all {
			if len(row) > 1 || row[0] != "" {
				want = append(want, row)
			}
		}
		got, err := allRows(strings.NewReader(text.String()))
		got = slices.DeleteFunc(got, func(row []string) bool { return len(row) == 1 && row[0] == "" }) // "" alone
		switch {
		case wrong == nil && (!errors.Is(err, io.EOF) || !reflect.DeepEqual(got, want) && len(got)+len(want) > 0):
			t.Fatalf("%q: %q, %v, want %q", text.String(), got, err, want)
		case wrong != nil && errors.Is(err, io.EOF) && !strings.Contains(text.String(), `" `):
			t.Fatalf("%q: read as %q in spite of %v", text.String(), got, wrong)
		case wrong == nil:
			accepted++
		}
	}
	if accepted < 1000 {
		t.Errorf("only %d texts are CSV", accepted)
	}
}
