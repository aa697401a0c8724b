package textfile_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/internal/textfile"
)

func TestATextThatASpreadsheetWouldComputeGetsAMark(t *testing.T) {
	for text, want := range map[string]string{
		`=HYPERLINK("http://x")`: `'=HYPERLINK("http://x")`,
		"+1+cmd|'/c calc'!A0":    "'+1+cmd|'/c calc'!A0",
		"-2+3":                   "'-2+3",
		"@SUM(A1)":               "'@SUM(A1)",
		"\t=1":                   "'\t=1",
		"\r=1":                   "'\r=1",
		"'=1":                    "''=1",
		"train-a=b":              "train-a=b",
		"'quoted":                "'quoted",
		"":                       "",
		"-":                      "-",
		"-12.5":                  "-12.5",
		"+3e4":                   "+3e4",
	} {
		if got := textfile.EscapeFormula(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestAMarkBeforeAFormulaIsTakenBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Repeat("'", rapid.IntRange(0, 2).Draw(t, "marks")) +
			rapid.StringMatching(`[-=+@'\t\r\n0-9a]{0,5}`).Draw(t, "text")
		cell := textfile.EscapeFormula(text)
		if got := textfile.UnescapeFormula(cell); got != text {
			t.Fatalf("%q as %q is %q", text, cell, got)
		}
		if cell != text && cell[0] != '\'' {
			t.Fatalf("%q is %q", text, cell)
		}
	})
}
