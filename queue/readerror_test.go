package queue_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/queue"
)

// badInput is a file and the whole message that it must lead to.
type badInput struct{ name, text, want string }

func TestBadInputIsNamedWithItsPositionAndWhatWasExpected(t *testing.T) {
	for _, c := range slices.Concat(badCSV, badJSON) {
		t.Run(c.name, func(t *testing.T) {
			b, err := queue.Read(strings.NewReader(c.text), "batch", queue.Auto)
			if err == nil {
				t.Fatalf("no error for %q", c.text)
			}
			if b != nil {
				t.Error("a batch came with the error")
			}
			if err.Error() != c.want {
				t.Errorf("\n got %s\nwant %s", err, c.want)
			}
			if _, ok := errors.AsType[*queue.SyntaxError](err); !ok {
				t.Errorf("%T is no SyntaxError", err)
			}
		})
	}
}

func TestAValueThatIsIgnoredIsJSONAllTheSame(t *testing.T) {
	for value, want := range map[string]string{
		`{"b":[1,{}],"c":null}`: "",
		`[1 2]`:                 "batch:1:37: invalid character '2' after array element, want ',' or ']'",
		`{"b" 1}`:               "batch:1:39: invalid character '1' after object name, want ':'",
		`[{"b":1},,2]`:          `batch:1:43: unexpected ",", want a value on both sides of it`,
		`[{1:2}]`:               "batch:1:36: object member name must be a string, want JSON",
	} {
		text := `[{"id":"a","runtime_s":1,"other":` + value + `}]`
		_, err := queue.ReadWith(strings.NewReader(text), "batch", queue.JSON, &queue.TableOptions{Ignore: true})
		if got := fmt.Sprint(err); want == "" && err != nil || want != "" && got != want {
			t.Errorf("%s: error %s, want %q", value, got, want)
		}
	}
}

func TestNothingIsReadAfterTheFirstBadRecord(t *testing.T) {
	for _, start := range []string{"id,runtime_s\na,-1\n", "{\"id\":\"a\",\"runtime_s\":-1}\n"} {
		rest := &endlessWords{text: strings.TrimPrefix(start, "id,runtime_s\n"), left: gibibyte}
		_, err := queue.Read(readers(start, rest), "batch", queue.Auto)
		if err == nil || rest.read > mebibyte {
			t.Errorf("%d bytes were read until %v", rest.read, err)
		}
	}
}

func TestTooManyExtraColumnsAreRefused(t *testing.T) {
	names := make([]string, 65)
	for i := range names {
		names[i] = "x_" + strings.Repeat("a", i+1)
	}
	csv := "id,runtime_s," + strings.Join(names, ",") + "\n"
	json := `[{"id":"a","runtime_s":1,"` + strings.Join(names, `":1,"`) + `":1}]`
	for _, text := range []string{csv, json} {
		_, err := queue.Read(strings.NewReader(text), "batch", queue.Auto)
		if err == nil || !strings.HasSuffix(err.Error(), "is one x_ column too many, want at most 64") {
			t.Errorf("error %v", err)
		}
	}
}
