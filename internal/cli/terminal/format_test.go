package terminal

import (
	"bufio"
	"bytes"
	"testing"
)

func TestFactsAreAListInMarkdownAndNothingActsOnThePage(t *testing.T) {
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	markdownLines(w, "Used        200 kWh by <b>_ada_</b>\n            energy of the GPUs\n"+
		"Cost        60 EUR\n\n"+
		"By user\n\x00| user |\n\x00| --- |\n\x00| ada |\n\x00\nIdle        3 h\n\x00| a |\n")
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	want := "- **Used** 200 kWh by &lt;b&gt;\\_ada\\_&lt;/b&gt;\n  energy of the GPUs\n" +
		"- **Cost** 60 EUR\n\nBy user\n\n" +
		"| user |\n| --- |\n| ada |\n\n- **Idle** 3 h\n\n| a |\n"
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
