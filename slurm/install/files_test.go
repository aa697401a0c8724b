package install_test

import (
	"os"
	"testing"
)

func writeFile(tb testing.TB, path, text string) {
	tb.Helper()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		tb.Fatal(err)
	}
}
