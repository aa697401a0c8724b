package queue_test

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/epplan/epplan/queue"
)

// checkRead returns what must hold for every input: no panic, and either an error
// without a batch or a valid batch that survives both writers.
func checkRead(t *testing.T, data []byte, format queue.Format) *queue.Batch {
	t.Helper()
	b, err := queue.Read(bytes.NewReader(data), "batch", format)
	if err != nil {
		if b != nil {
			t.Fatal("a batch came with the error")
		}
		if queue.Printable(err.Error()) != err.Error() {
			t.Fatalf("message %q", err)
		}
		return nil
	}
	if err := b.Validate(); err != nil {
		t.Fatalf("read without an error, but: %v", err)
	}
	want := placeless(b.Jobs)
	for name, write := range map[string]writer{"csv": queue.WriteCSV, "json": queue.WriteJSON} {
		if got := reread(t, write, queue.Auto, b); !reflect.DeepEqual(got, want) {
			t.Fatalf("%s:\n got %+v\nwant %+v", name, got, want)
		}
	}
	return b
}

func FuzzReadCSV(f *testing.F) {
	for _, seed := range []string{
		"id,runtime_s\na,1\n",
		"\uFEFFx_z,runtime_s, id,name,user,workload,arrival_s,deadline_s,limit_s,power_w,gpus,share,cpus," +
			"mem_gib,t0_s,p0_w,gamma_w,c_w,d_s,delta\r\n" +
			"\" \n\",120, a,\"x, \"\"y\"\"\n\",ann,gemm,1,1000,inf,200, V100:1 ; *:1 ,0.5,4,16,1e-7,60,30,110,99.5,.5\r\n",
		"id,workload,gpus\na,w,2.0\nb,w,1024\n",
		"JobID;Job Name;Submit;Timelimit;Elapsed;ReqTRES;Partition;\n" +
			"4_3;\"a\";2026-03-31T08:00:00;1-00:00:00;01:30:00;\"cpu=4,gres/gpu:v100=2,mem=64G\";gpu;\n",
		"id\truntime\tdeadline\tmem\n a\t1,5h\tUNLIMITED\t16G\n",
		"id|walltime_h|runtime (min)|gres\na|P1DT2H|90|gpu:2(S:0)\n",
		"id,runtime_s\n\"a", "id,,\n", "id,runtime_s\na,NaN\n", "\x00", "id,x_\xff\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) { checkRead(t, data, queue.CSV) })
}

func FuzzReadEDL(f *testing.F) {
	for _, seed := range []string{
		"id,app,arrival,deadline,P0,gamma,c,D,delta,t0,limit,gpus\n0,cfd,0,26.5,70,24,87,19.9,0.6,3.9,,\n" +
			"1,m,5,inf,40,37,114,174,0.07,17,25,V100:2\n",
		"id,P0,gamma,c,D,delta,t0\n0,1,1,1,1,1,1\n", "id,P0,gamma,c,D,delta,t0,x_a\n0,1,1,1,1,1,,\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b := checkRead(t, data, queue.EDL)
		if b == nil {
			return
		}
		if got := reread(t, queue.WriteEDL, queue.EDL, b); !reflect.DeepEqual(got, placeless(b.Jobs)) {
			t.Fatalf("edl:\n got %+v\nwant %+v", got, placeless(b.Jobs))
		}
	})
}

func FuzzReadJSON(f *testing.F) {
	for _, seed := range []string{
		`{"jobs":[{"id":"a","runtime_s":1},{"id":"b","workload":"w","gpus":{"V100":2,"*":4}}]}`,
		`[{"id":7,"x_a":true,"x_b":"\r\n","model":{"p0_w":1,"gamma_w":1,"c_w":1,"d_s":1,"delta":0,"t0_s":0}}]`,
		"{\"id\":\"\\ud834\\udd1e\",\"runtime_s\":1e3,\"deadline_s\":\"inf\"}\n" +
			"{\"id\":\" b \",\"runtime_s\":2,\"name\":null}\n",
		`[{"JobID":"4_3","elapsed":"1h 30m","Time Limit":"INFINITE","gres":"gpu:a100:2","submit":"2026-03-31T08:00Z","mem":"8GB"}]`,
		`[{"id":"a","gpus":"V100:2"`, `{`, `[1e999]`, `{"jobs":[]} x`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) { checkRead(t, data, queue.JSON) })
}
