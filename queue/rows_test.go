package queue_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/epplan/epplan/queue"
)

// allRows reads until the first error.
func allRows(r io.Reader) (rows [][]string, err error) {
	in := queue.NewCSVRows(r, "f.csv")
	for {
		row, err := in.Read()
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
}

func TestARowOfAnyFileIsBoundedAndItsErrorNamesFileAndLine(t *testing.T) {
	for name, c := range map[string]struct{ start, repeat, want string }{
		"header": {
			"", "x", "f.csv:1:1: line is longer than 1 MiB, want one row a line, every opened \" closed",
		},
		"cell":          {"a,b\n1,", "x", "f.csv:2:1: line is longer than 1 MiB"},
		"cells":         {"a,b\n1,", "x,", "f.csv:2:1: line is longer than 1 MiB"},
		"quoted cell":   {"a,b\n1,\"", "x\n", "f.csv:2:1: record is longer than 1 MiB"},
		"not even text": {"a,b\n1,", "\xff\xfe", "f.csv:2:1: line is longer than 1 MiB"},
	} {
		rest := &endlessWords{text: c.repeat, left: gibibyte}
		before := allocated()
		_, err := allRows(readers(c.start, rest))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
		if used := allocated() - before; rest.read > 2*mebibyte || used > gibibyte/8 {
			t.Errorf("%s: %d bytes were read and %d allocated", name, rest.read, used)
		}
	}
}

func TestManyRowsThatAreLongTogetherAreRead(t *testing.T) {
	const count = 40
	row := strings.Repeat("x", mebibyte/4) + ",\"" + strings.Repeat("y\n", mebibyte/8) + "\"\n"
	rows, err := allRows(strings.NewReader("a,b\n" + strings.Repeat(row, count)))
	if !errors.Is(err, io.EOF) || len(rows) != 1+count {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

func TestRowsAreReadAsTheyAreButForAMarkOfByteOrder(t *testing.T) {
	rows, err := allRows(strings.NewReader("\ufeffname,n\r\n\"J\xf6rg\",1\r\n\n\"a\"\"b\nc\",2"))
	if !errors.Is(err, io.EOF) || len(rows) != 3 || rows[0][0] != "name" || rows[1][0] != "J\xf6rg" ||
		rows[2][0] != "a\"b\nc" {
		t.Errorf("%q, %v", rows, err)
	}
}

func TestABrokenRowIsAnErrorWithItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"\xff\xfea\x00,\x00": "f.csv:1:4: byte 0x00 is not text, want a file in UTF-8",
		"a,b\n1,2\n3\n":      "f.csv:3: 1 fields, want 2, as the header has",
		"a,b\n1,x\"y\n": "f.csv:2: a \" that doesn't belong there: want \"…\" around such a " +
			"field, and \"\" for each inside",
		"a,b\n\"1\n2\" ,\n":      "f.csv:2: a \" that doesn't belong there",
		"a,b\n1,2\n\"no end\n\n": "f.csv:3: a \" that doesn't belong there",
	} {
		if _, err := allRows(strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	broken := errors.New("broken")
	if _, err := allRows(io.MultiReader(strings.NewReader("a\n1\n"),
		iotest.ErrReader(broken))); !errors.Is(err, broken) || err.Error() != "f.csv: broken" {
		t.Error(err)
	}
}
