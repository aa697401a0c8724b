package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/cli/terminal"
)

// embedder speaks the embeddings API: a text's embedding is the logarithm-like number
// of its digits, its length, and 1.
func embedder(t *testing.T, asked *int) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked++
		var q struct{ Input []string }
		if json.NewDecoder(r.Body).Decode(&q) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		var rows []string
		for i, text := range q.Input {
			rows = append(rows,
				fmt.Sprintf(`{"index":%d,"embedding":[%d,%d,1]}`, i, strings.Count(text, "0"), len(text)))
		}
		_, _ = fmt.Fprintf(w, `{"data":[%s]}`, strings.Join(rows, ","))
	}))
	t.Cleanup(s.Close)
	return s
}

func TestPredictAsksAnEmbeddingServerOnceAndKeepsWhatItSays(t *testing.T) {
	dir := t.TempDir()
	var table strings.Builder
	table.WriteString("job_id,file,time_a_s\n")
	for i := range 8 {
		name := fmt.Sprintf("p%d.py", i)
		text := fmt.Sprintf("password = 'hunter22'\nepochs = 1%s\n", strings.Repeat("0", i))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintf(&table, "j%d,%s,%d\n", i, name, 10<<i)
	}
	jobs := filepath.Join(dir, "jobs.csv")
	if err := os.WriteFile(jobs, []byte(table.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	asked := 0
	server := embedder(t, &asked)
	args := []string{
		"epplab", "predict", "--code", dir, "--train", jobs, "--test", jobs, "--csv",
		"--embeddings", server.URL, "--allow-host", "127.0.0.1", "--embedding-cache",
		filepath.Join(dir, "cache"),
	}
	for range 2 {
		var stdout, stderr bytes.Buffer
		status := newProgram().Run(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
		if status != terminal.ExitDone {
			t.Fatalf("exit status %d: %s", status, stderr.String())
		}
		if lines := strings.Count(stdout.String(), "\n"); lines != 9 || stderr.Len() > 0 {
			t.Errorf("%d lines, and on standard error %q, want 9 and nothing:\n%s", lines, stderr.String(),
				stdout.String())
		}
		if !strings.Contains(stdout.String(), ",code,0,") {
			t.Errorf("output\n%s\nwant predictions from code", stdout.String())
		}
	}
	if asked != 1 {
		t.Errorf("the server was asked %d times, want once for both runs", asked)
	}
}
