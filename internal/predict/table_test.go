package predict_test

import (
	"math"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/predict"
)

func read(t *testing.T, text string, want predict.Columns) (*predict.Table, error) {
	t.Helper()
	return predict.ReadTable(strings.NewReader(text), "jobs.csv", want, nil)
}

func TestATableIsReadByItsColumns(t *testing.T) {
	table, err := read(t,
		"job_id,submit_s,user,job_name,gpus,requested_s,wait_s,runtime_s,state,energy_kwh\n"+
			"a,10,u,train,2,3600,5,100,COMPLETED,0.5\nb,20,u,train,,,,,,\n", predict.Columns{})
	if err != nil {
		t.Fatal(err)
	}
	a, b := &table.Jobs[0], &table.Jobs[1]
	if a.ID != "a" || a.Owner != "u" || a.Labels[0] != "train" || a.Sizes[0] != 2 || a.Requested != 3600 {
		t.Errorf("job %+v", a)
	}
	if o := table.Outcomes[0]; o.End != 115 || !o.Completed || o.ValueOf(predict.Time) != 100 ||
		o.ValueOf(predict.Energy) != 0.5 || !math.IsNaN(o.ValueOf(predict.Power)) {
		t.Errorf("outcome %+v", o)
	}
	if o := table.Outcomes[1]; !math.IsNaN(o.End) || !math.IsNaN(b.Requested) || !math.IsNaN(b.Sizes[0]) {
		t.Errorf("job %+v, outcome %+v, want that nothing is known", b, o)
	}
	if table.Measured(predict.Time) != 1 || table.Measured(predict.Power) != 0 || table.Lines[1] != 3 {
		t.Errorf("table %+v", table)
	}
}

func TestOwnerAndNameCanBeOtherColumns(t *testing.T) {
	const text = "job_id,submit_s,user,job_name,team,app\na,1,u,n,t,x\n"
	table, err := read(t, text, predict.Columns{Owner: "team", Name: "app"})
	if err != nil {
		t.Fatal(err)
	}
	if j := table.Jobs[0]; j.Owner != "t" || len(j.Labels) != 1 || j.Labels[0] != "x" {
		t.Errorf("job %+v, want owner t and name x", j)
	}
}

func TestBadTablesAreNamedWithTheirLine(t *testing.T) {
	for _, c := range []struct {
		text, want string
		columns    predict.Columns
	}{
		{"", "jobs.csv: is empty", predict.Columns{}},
		{"job_id\n", "jobs.csv:1: no column submit_s", predict.Columns{}},
		{"job_id,submit_s,submit_s\n", `jobs.csv:1:17: column "submit_s" is there twice`, predict.Columns{}},
		{
			"job_id,submit_s\na,soon\n", `jobs.csv:2: column submit_s is "soon", want a number`,
			predict.Columns{},
		},
		{"job_id,submit_s\na,\n", "jobs.csv:2: submit_s is empty", predict.Columns{}},
		{"job_id,submit_s\n,1\n", "jobs.csv:2: job_id is empty", predict.Columns{}},
		{"job_id,submit_s,runtime_s\na,1,-5\n", `jobs.csv:2: column runtime_s is "-5"`, predict.Columns{}},
		{"job_id,submit_s,runtime_s\na,1,NaN\n", `column runtime_s is "NaN"`, predict.Columns{}},
		{"job_id,submit_s\na,1,2\n", "jobs.csv:2:5: cells in this row: 3, want 2", predict.Columns{}},
		{
			"job_id,submit_s\n\"a,1\n",
			`jobs.csv:2:5: a quoted cell that does not end with "`,
			predict.Columns{},
		},
		{"job_id,submit_s\n", `jobs.csv:1: no column "who"`, predict.Columns{Owner: "who"}},
		{"job_id,submit_s,state\n", `column "state" says how jobs ended`, predict.Columns{Name: "state"}},
	} {
		_, err := read(t, c.text, c.columns)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want %s", c.text, err, c.want)
		}
	}
}

func FuzzReadTable(f *testing.F) {
	f.Add("job_id,submit_s,user\na,1,u\n")
	f.Add("job_id,submit_s,runtime_s,state\na,1,2,FAILED\n\"b\",1e9,,\n")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := predict.ReadTable(strings.NewReader(text), "x", predict.Columns{}, nil)
		if err == nil && (len(table.Jobs) != len(table.Outcomes) || len(table.Jobs) != len(table.Lines)) {
			t.Fatalf("%d jobs, %d outcomes, %d lines", len(table.Jobs), len(table.Outcomes), len(table.Lines))
		}
	})
}

func TestTargetsAreParsed(t *testing.T) {
	for _, target := range []predict.Target{predict.Time, predict.Energy, predict.Power} {
		if got, err := predict.ParseTarget(target.String()); err != nil || got != target ||
			target.Unit() == "" || target.Column() == "" {
			t.Errorf("%v: %v, %v", target, got, err)
		}
	}
	if _, err := predict.ParseTarget("money"); err == nil {
		t.Error("money: no error")
	}
}
