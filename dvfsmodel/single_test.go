package dvfsmodel_test

import (
	"errors"
	"math"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/testkit/shareddata"
)

func TestSingleTaskOptimaMatchTheReferenceRows(t *testing.T) {
	for _, interval := range []string{"wide", "narrow"} {
		for _, limits := range []string{"free", "deadline"} {
			t.Run(interval+"/"+limits, func(t *testing.T) {
				checkSingleFile(t, interval, "edl/single_"+interval+"_"+limits+".csv")
			})
		}
	}
}

func checkSingleFile(t *testing.T, interval, file string) {
	t.Helper()
	r, err := dvfsmodel.RangeByName(interval)
	if err != nil {
		t.Fatal(err)
	}
	rows := shareddata.Rows(t, shareddata.Path(t, file))
	if len(rows) != 400 {
		t.Fatalf("%d rows, want 400", len(rows))
	}
	for _, row := range rows {
		checkSingleRow(t, r, row)
	}
}

func checkSingleRow(t *testing.T, r dvfsmodel.Range, row map[string]string) {
	t.Helper()
	p := dvfsmodel.Params{
		P0:    dvfsmodel.Watt(shareddata.Number(t, row["P0"])),
		Gamma: dvfsmodel.Watt(shareddata.Number(t, row["gamma"])),
		C:     dvfsmodel.Watt(shareddata.Number(t, row["c"])),
		D:     shareddata.Number(t, row["D"]), Delta: shareddata.Number(t, row["delta"]),
		T0: shareddata.Number(t, row["t0"]),
	}
	pt, err := r.Optimum(p, dvfsmodel.MinEnergy(), shareddata.Number(t, row["limit"]))
	near(t, row, "t_min", r.MinTime(p), 1e-12)
	if row["feasible"] == "0" {
		var infeasible *dvfsmodel.InfeasibleError
		if !errors.As(err, &infeasible) || !errors.Is(err, dvfsmodel.ErrInfeasible) {
			t.Errorf("row %s (%s): got %v, want infeasible", row["id"], row["case"], err)
			return
		}
		near(t, row, "t_min", infeasible.MinTime, 1e-12)
		return
	}
	if err != nil {
		t.Errorf("row %s (%s): %v", row["id"], row["case"], err)
		return
	}
	near(t, row, "E", float64(pt.Energy), 1e-10)
	near(t, row, "t", pt.Time, 1e-10)
	near(t, row, "P", float64(pt.Power), 1e-10)
	near(t, row, "fc", pt.Scaling.Fc, 1e-8)
	near(t, row, "Vc", float64(pt.Scaling.V), 1e-8)
	if row["clocks_unique"] == "1" {
		near(t, row, "fm", pt.Scaling.Fm, 1e-8)
	}
	if !r.Contains(pt.Scaling, 1e-12) {
		t.Errorf("row %s: setting %+v lies outside the range", row["id"], pt.Scaling)
	}
}

func near(t *testing.T, row map[string]string, column string, got, tol float64) {
	t.Helper()
	want := shareddata.Number(t, row[column])
	if !(math.Abs(got-want) <= tol*math.Abs(want)) {
		t.Errorf("row %s (%s): %s = %.15g, want %.15g", row["id"], row["case"], column, got, want)
	}
}
