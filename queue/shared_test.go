package queue_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/queue"
)

func TestTaskSetsOfTheEDLPaperAreReadWhole(t *testing.T) {
	dir := shareddata.Path(t, "edl/tasksets")
	for name, jobs := range map[string]int{
		"off_tiny": 24, "off_u0.2": 408, "off_u0.6": 1210, "off_u1.0": 2048, "off_u1.0_fitted": 1997,
		"off_u1.6": 3174,
		"on_tiny":  40, "on_0.2_0.4": 1266, "on_0.4_1.6_a": 4077, "on_0.4_1.6_b": 4098,
	} {
		b := readFile(t, filepath.Join(dir, name+".csv"), queue.EDL)
		if len(b.Jobs) != jobs {
			t.Errorf("%s: %d jobs, want %d", name, len(b.Jobs), jobs)
		}
		if auto := readFile(t, filepath.Join(dir, name+".csv"), queue.Auto); !reflect.DeepEqual(auto, b) {
			t.Errorf("%s: read otherwise without its format", name)
		}
		if got := reread(t, queue.WriteEDL, queue.EDL, b); !reflect.DeepEqual(got, placeless(b.Jobs)) {
			t.Errorf("%s: written and read again is not the same", name)
		}
	}
}

func readFile(t *testing.T, path string, format queue.Format) *queue.Batch {
	t.Helper()
	text, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		t.Fatal(err)
	}
	b, err := queue.Read(bytes.NewReader(text), path, format)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
