package daemon_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/control"
	"github.com/epplan/epplan/internal/daemon"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/predict/source"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/testkit/storetest"
	"github.com/epplan/epplan/slurm/hooks"
)

// A user asks at a desk with a store of its own; another's uid in a message is no use.
func TestUsersMayTellOfTheirOwnCodeAndOfNobodyElses(t *testing.T) {
	user := int64(os.Geteuid()) + 1 // neither root nor who runs the desk
	storetest.NeedSQLite(t)
	records, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "records.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = records.Close() })
	c, err := control.New(t.Context(), control.Options{Records: control.RecordsIn(records), Cluster: "alpha"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	mux := http.NewServeMux()
	(&daemon.ControllerServer{Control: c, Access: &daemon.Access{}, Started: time.Now()}).Routes(mux,
		func(*http.Request) int64 { return user })
	ask := func(path string, message any) (int, string) {
		t.Helper()
		body, err := json.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer,
			httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(body)))
		return answer.Code, answer.Body.String()
	}
	request := &epdapi.CodeRequest{
		Submission: hooks.Submission{
			Version: hooks.ProtocolVersion, Kind: "batch", UID: 0, Name: "x", TRESPerNode: "gres/gpu:1",
			Script: "#!/bin/sh\n",
		},
		Code: &epdapi.Code{Files: 1, Vector: make([]float32, source.Dimensions)},
	}
	if status, body := ask(epdapi.PathCode, request); status != http.StatusOK ||
		!strings.Contains(body, `"kept":true`) {
		t.Errorf("status %d: %s", status, body)
	}
	for _, path := range []string{epdapi.PathCode, epdapi.PathEstimate} {
		wrong := *request
		wrong.Code = &epdapi.Code{Files: 1, Vector: make([]float32, source.Dimensions-1)}
		if status, body := ask(path, &wrong); status != http.StatusBadRequest {
			t.Errorf("%s: status %d: %s", path, status, body)
		}
	}
	if status, body := ask(epdapi.PathEstimate, request); status != http.StatusOK ||
		!strings.Contains(body, `"rung":"prior"`) {
		t.Errorf("status %d: %s", status, body)
	}
	if status, _ := ask(epdapi.PathSubmit, &request.Submission); status != http.StatusForbidden {
		t.Errorf("submitting as job_submit does: status %d", status)
	}
	large := *request
	large.Script = hooks.Hex(strings.Repeat("x", 600<<10))
	if status, _ := ask(epdapi.PathCode, &large); status != http.StatusRequestEntityTooLarge &&
		status != http.StatusBadRequest {
		t.Errorf("a script of 600 KiB: status %d", status)
	}
}
