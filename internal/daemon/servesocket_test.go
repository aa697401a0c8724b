package daemon_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/epplan/epplan/internal/daemon"
	"github.com/epplan/epplan/internal/epdapi"
)

func TestASocketThatWasRemovedComesBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	path := filepath.Join(dir, "epd.sock")
	l, err := daemon.Listen(t.Context(), path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+epdapi.PathStatus, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("{}"))
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- daemon.ServeSocket(ctx, l, 0o600, mux, daemon.Door{Full: func(int64) bool { return true }})
	}()
	answers := func() bool {
		_, err := epdapi.New(path).Status(t.Context())
		return err == nil
	}
	eventually(t, "it answers", answers)
	if err := os.RemoveAll(dir); err != nil { // somebody cleans /run
		t.Fatal(err)
	}
	if answers() {
		t.Error("it answers without a socket")
	}
	eventually(t, "it answers again", answers)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("the socket is left behind")
	}
}
