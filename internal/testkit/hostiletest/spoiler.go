// Package hostiletest puts hostile texts wherever an answer has a text, and says whether what is shown of it
// is plain: users, nodes and administrators write names, comments and reasons as they like.
package hostiletest

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/spelling"
)

// Texts change a terminal, its title or its clipboard, link elsewhere, hide or reverse what is written, begin
// lines, are a formula in a table, an element of a page, a row of a report, or don't end.
var Texts = []string{
	"=1+1\x1b[2J\x1b]0;title\x07", "+1\x1b]52;c;ZXZpbA==\x07", "-1\x1b]8;;http://evil.example\x1b\\x",
	"@SUM(1)\u009d\u009b2J", "\t=1\r\nerror: forged", "\r=1\x00\x7f\b\b",
	"a\u202eb\u2066c\u200bd\ufeffe\u00adf\u2028g",
	"\"',;|<script>alert(1)</script><img src=x onerror=alert(1)>\n| a | b |\n",
	"日本語" + strings.Repeat("長", 3000),
}

// Spoiler puts one of the texts in one place of what it is given: before a text, or before a key.
type Spoiler struct {
	Place int // by number, from 1 on
	Seen  int // so many places
}

// JSON returns a value, such as [json.Unmarshal] makes of any, with the text in its place.
func (s *Spoiler) JSON(value any) any {
	switch v := value.(type) {
	case string:
		return s.text(v)
	case []any:
		for i := range v {
			v[i] = s.JSON(v[i])
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			one := s.JSON(v[key])
			delete(v, key)
			v[s.text(key)] = one
		}
	}
	return value
}

func (s *Spoiler) text(text string) string {
	if s.Seen++; s.Seen != s.Place {
		return text
	}
	return Texts[s.Seen%len(Texts)] + text
}

// NewHandler passes the answers of another one on, spoilt by whoever is there at that time.
func NewHandler(h http.Handler, by **Spoiler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, r)
		w.WriteHeader(answer.Code)
		var value any
		if err := json.Unmarshal(answer.Body.Bytes(), &value); err == nil {
			_ = json.NewEncoder(w).Encode((*by).JSON(value))
		}
	})
}

// Places calls f with a spoiler of each place in turn, of every so manieth.
func Places(every int, f func(*Spoiler)) (places int) {
	for place := 0; place <= places; place += every { // 0: nothing is spoilt
		s := &Spoiler{Place: place}
		f(s)
		places = max(places, s.Seen)
	}
	return places
}

// Plain is nil if an output is plain text for people, or of a kind ("--json", "--csv") for programs: no
// character acts on a terminal, hides or reverses others, and no cell is a formula.
func Plain(output, kind string) error {
	isHarm := func(r rune) bool { return r != '\n' && !spelling.IsShown(r) }
	if i := strings.IndexFunc(output, isHarm); i >= 0 {
		return fmt.Errorf("not plain: %+q", output[max(0, i-60):min(len(output), i+20)])
	}
	switch {
	case output == "":
	case kind == "--json" && !json.Valid([]byte(output)):
		return fmt.Errorf("no JSON: %q", output)
	case kind == "--csv":
		return noFormula(output)
	}
	return nil
}

func noFormula(output string) error {
	rows, err := csv.NewReader(strings.NewReader(output)).ReadAll()
	if err != nil {
		return err
	}
	for _, cell := range slices.Concat(rows...) {
		_, number := strconv.ParseFloat(cell, 64)
		if number != nil && strings.ContainsAny(cell[:min(1, len(cell))], "=+-@\t\r") {
			return fmt.Errorf("a formula: %q", cell)
		}
	}
	return nil
}
