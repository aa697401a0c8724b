package queue_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/epplan/epplan/queue"
)

func TestAProfileReadsTheSameFromCSVAndJSON(t *testing.T) {
	want := &queue.GPUProfile{UtilPct: []float64{40, 60.5, 35}, Slot: 60, MemGB: 4, Kappa: 1.5}
	for _, text := range []string{
		"id,runtime_s,util_pct,slot_s,gpu_mem_gb,kappa\na,10,40  60.5 35,60,4,1.5\n",
		`[{"id":"a","runtime_s":10,"util_pct":[40,60.5,35],"slot_s":60,"gpu_mem_gb":4,"kappa":1.5}]`,
		`{"id":"a","runtime_s":10,"kappa":1.5,"util_pct":"40 60.5 35","slot_s":60,"gpu_mem_gb":4}`,
	} {
		b, err := queue.Read(strings.NewReader(text), "batch", queue.Auto)
		if err != nil {
			t.Fatal(err)
		}
		if got := b.Jobs[0].Profile; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}
