package trace_test

import (
	"strings"
	"testing"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/lab/trace"
)

func TestANodesEnergyWeightGoesBeforeThatOfItsGPUModel(t *testing.T) {
	power := "[[gpu]]\nname = \"K9\"\nidle_w = 1\nbusy_w = 2\nenergy_weight = 1.8\n[[gpu]]\nname = \"K8\"\n" +
		"idle_w = 1\nbusy_w = 2\n"
	more, err := config.ReadProfiles(strings.NewReader(power), "p.toml")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := trace.ReadNodes(strings.NewReader("cpu_milli,memory_mib,gpu,model,energy_weight\n"+
		"1000,1,1,K9,\n1000,1,1,K9,0.5\n1000,1,1,K8,\n1000,1,1,K8,3\n1000,1,0,,2\n1000,1,1,K8,3\n"), "n.csv")
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := trace.Kinds(rows, "n.csv", config.BuiltinProfiles().With(more))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{1.8, 0.5, 0, 3, 2, 3} {
		if got := kinds[i].Power.Weight; got != want {
			t.Errorf("node %d: a watt counts %v, want %v", i, got, want)
		}
	}
	if kinds[3] != kinds[5] || kinds[2] == kinds[3] {
		t.Error("kinds aren't told apart by their weights")
	}
	for _, bad := range []string{"0", "-1", "NaN", "inf", "much"} {
		_, err := trace.ReadNodes(strings.NewReader("cpu_milli,memory_mib,gpu,model,energy_weight\n"+
			"1000,1,1,K9,"+bad+"\n"), "n.csv")
		if err == nil || !strings.Contains(err.Error(), "n.csv:2:13: energy_weight is ") {
			t.Errorf("%s: error %v", bad, err)
		}
	}
}
