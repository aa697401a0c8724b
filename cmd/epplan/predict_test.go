package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/cli/prediction"
)

func TestTheTableOfPredictionsHidesNothingOfAName(t *testing.T) {
	var out bytes.Buffer
	err := prediction.WriteCSV(&out, []prediction.Job{{ID: "=a\u200b\u202e", Rung: "prior"}}, false)
	if err != nil || !strings.Contains(out.String(), "\n'=a\\u200b\\u202e,0,0,0,prior\n") {
		t.Errorf("%q, %v", out.String(), err)
	}
}
