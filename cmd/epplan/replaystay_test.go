package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"
)

func TestALongReplayWithDeparturesStopsWithinASecond(t *testing.T) {
	dir := madeTrace(t, "1213")
	const before = 300 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), before)
	defer cancel()
	var out, errs bytes.Buffer
	started := time.Now()
	code := run(ctx, []string{"epplan", "replay", dir, "--departures", "--seeds", "100"}, strings.NewReader(""), &out, &errs)
	if took := time.Since(started); took > before+soon {
		t.Errorf("stopped after %v", took)
	}
	if code != exitInterrupted || out.Len() > 0 {
		t.Errorf("exit status %d, %q, %q", code, &out, &errs)
	}
}
