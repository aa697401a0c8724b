package query

import (
	"testing"

	"github.com/epplan/epplan/internal/savings"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// Arms are compared only with those of the same parts of the lot.
func TestArmsOfOtherPartsOfTheLotAreApart(t *testing.T) {
	key := record.WorkloadKey{Cluster: "alpha", Workload: "a", GPUModel: "V100"}
	one := record.Mean{Runs: 1, Value: 5}
	strata := []record.Stratum{
		{WorkloadKey: key, HoldOut: 0.05, Arm: live.ArmHeldOut, GPU: one},
		{WorkloadKey: key, HoldOut: 0.05, ConstantArm: 0.1, Arm: live.ArmConstant, GPU: one},
		{WorkloadKey: key, HoldOut: 0.05, ConstantArm: 0.1, Arm: live.ArmTreated, GPU: one},
		{WorkloadKey: key, HoldOut: 0.05, ConstantArm: 0.1, Arm: "of a newer epd", GPU: one},
		{WorkloadKey: key, HoldOut: 0.1, ConstantArm: 0.1, Arm: live.ArmHeldOut, GPU: one},
	}
	got := comparisonsOf(strata)
	want := []savings.Arms{{Held: one}, {Treated: one, Constant: one}, {Held: one}}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i].gpu != want[i] {
			t.Errorf("%d: %+v, want %+v", i, got[i].gpu, want[i])
		}
	}
}
