package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/cli/terminal"
)

// programs are source files with a table of what they took: in proportion to their
// epochs; the last one is in another language.
func programs(t *testing.T) (dir, train, test string) {
	t.Helper()
	dir = t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var table strings.Builder
	table.WriteString("job_id,file,time_a_s\n")
	for i := range 20 {
		write(fmt.Sprintf("p%d.py", i), inStyle(i+2))
		_, _ = fmt.Fprintf(&table, "j%d,p%d.py,%d\n", i, i, 100*(i+2))
	}
	write("train.csv", table.String())
	write("odd.f90", "program lattice\ninteger, parameter :: nsteps = 11\n"+
		"call collide_and_stream(populations, nsteps)\ncall halo_exchange(mpi_comm_world)\nend program\n")
	write("test.csv", "job_id,file\nodd,odd.f90\n")
	return dir, filepath.Join(dir, "train.csv"), filepath.Join(dir, "test.csv")
}

func inStyle(epochs int) string {
	return fmt.Sprintf("import torch\nepochs = %d\nfor epoch in range(epochs):\n    train(model, loader)\n",
		epochs)
}

func TestPredictHasStrangeSourcesRewrittenWhereItIsAskedTo(t *testing.T) {
	dir, train, test := programs(t)
	reply := inStyle(11)
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.URL.Path != "/v1/chat/completions" || reply == "" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		text, err := json.Marshal(reply)
		if err != nil {
			t.Error(err)
		}
		_, _ = fmt.Fprintf(w, `{"choices":[{"message":{"content":%s}}]}`, text)
	}))
	t.Cleanup(server.Close)
	predicted := func(flags ...string) (value float64, stderr string) {
		t.Helper()
		args := append([]string{"predict", "--code", dir, "--train", train, "--test", test, "--csv"},
			flags...)
		code, stdout, stderr := inProcess(t, args...)
		rows, err := csv.NewReader(strings.NewReader(stdout)).ReadAll()
		if code != terminal.ExitDone || err != nil || len(rows) != 2 || rows[1][5] != "1" {
			t.Fatalf("exit status %d, %v, %q, %s", code, err, rows, stderr)
		}
		if value, err = strconv.ParseFloat(rows[1][1], 64); err != nil {
			t.Fatal(err)
		}
		return value, stderr
	}
	asItIs, _ := predicted()
	to := []string{"--align", server.URL, "--allow-host", "127.0.0.1", "--align-rounds", "2"}
	value, stderr := predicted(to...)
	if math.Abs(value-1100) > 150 || stderr != "" || asked != 1 {
		t.Errorf("rewritten: %g s, want about 1100; asked %d times; %s", value, asked, stderr)
	}
	for name, c := range map[string]struct{ reply, warning string }{
		"other numbers": {inStyle(12), "no rewrite passed, these are missing: nsteps = 11"},
		"refused":       {"", "the rewriting server's answer makes no sense: status 403"},
	} {
		reply = c.reply
		if value, stderr = predicted(to...); value != asItIs || !strings.Contains(stderr, c.warning) {
			t.Errorf("%s: %g s, want %g; %q, want %q", name, value, asItIs, stderr, c.warning)
		}
	}
	if code, _, stderr := inProcess(t, "predict", "--code", dir, "--train", train, "--test", test, "--align",
		server.URL); code != terminal.ExitFailed ||
		!strings.Contains(stderr, "allowed hosts") {
		t.Errorf("exit status %d: %s", code, stderr)
	}
}
