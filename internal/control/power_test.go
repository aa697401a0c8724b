package control

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"
)

func TestWhatNodesDidIsLoggedAndNothingElseIsBelieved(t *testing.T) {
	var log bytes.Buffer
	r := newRig(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	for body, want := range map[string]int{
		`{"what":"suspend","nodes":["n1","n2"],"failed":{"n2":"no\nBMC"}}`: http.StatusOK,
		`{"what":"resume","nodes":["n1"]}`:                                 http.StatusOK,
		`{"what":"reboot","nodes":["n1"]}`:                                 http.StatusBadRequest,
		`{"what":"resume","nodes":[]}`:                                     http.StatusBadRequest,
		`{"what":"resume","nodes":["n1;x"]}`:                               http.StatusBadRequest,
		`{"what":"resume","nodes":["n1"],"failed":{"n3":"x"}}`:             http.StatusBadRequest,
		`{`: http.StatusBadRequest,
	} {
		if got := r.callAs(&root, http.MethodPost, "/v1/power", body, nil); got != want {
			t.Errorf("%s: status %d, want %d", body, got, want)
		}
	}
	for _, want := range []string{
		"msg=suspend nodes=2 first=n1 failed=1",
		`msg="suspend failed" node=n2 error="no / BMC"`, "msg=resume nodes=1",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %s: %s", want, &log)
		}
	}
	if strings.Contains(log.String(), "reboot") {
		t.Errorf("%s", &log)
	}
}
