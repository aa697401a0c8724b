package queue_test

import (
	"strings"

	"github.com/epplan/epplan/queue"
)

// badCSV are CSV batches with one fault each.
var badCSV = []badInput{
	{
		"unknown column near a known one", "id,deadlin_s,runtime_s\n",
		`batch:1:4: unknown column "deadlin_s", want "deadline_s" (or a name that begins with x_)`,
	},
	{
		"all unknown columns at once", "id,colour,runtme,deadlin_s,runtime_s\n",
		`batch:1:4: unknown columns "colour", "runtme" (did you mean runtime_s?), "deadlin_s" (did you mean deadline_s?), want each one of ` + strings.Join(queue.Columns(), ", ") + `, or a name that begins with x_`,
	},
	{
		"two columns for one thing", "id,walltime,runtime,Time Limit\n",
		`batch:1:21: columns "walltime" and "Time Limit" are both limit_s, want one of them`,
	},
	{
		"a column and an alias of it", "JobID,id,runtime\n",
		`batch:1:7: columns "JobID" and "id" are both id, want one of them`,
	},
	{
		"a name that is kept twice", "id,runtime_s,Partition,x_partition\n",
		`batch:1:24: column "x_partition" is there twice, want each once`,
	},
	{
		"a value under no name", "id,runtime_s,\na,1,x\n",
		`batch:2:5: "x" stands in a column without a name, want a name for it in the header`,
	},
	{
		"two numbers with a colon", "id,runtime_s,walltime\na,1,02:30\n",
		`batch:2:5: limit_s "02:30" may be hours and minutes or minutes and seconds, want "02:30:00" or "00:02:30"`,
	},
	{
		"sixty seconds", "id,runtime_s\na,00:01:60\n",
		`batch:2:3: runtime_s "00:01:60" is not a time, want up to 59 minutes and seconds, and with days up to 23 hours`,
	},
	{
		"a unit that isn't one", "id,runtime_s\na,3 fortnights\n",
		`batch:2:3: runtime_s "3 fortnights" has a unit that isn't known, "fortnights", want one of s, m, h, d`,
	},
	{
		"a run time without end", "id,runtime_s\na,UNLIMITED\n",
		`batch:2:3: runtime_s "UNLIMITED" is not a time, want seconds such as 12.5, 02:30:00, 1-02:30:00, 90m or PT2H30M`,
	},
	{
		"months", "id,runtime_s\na,P1M\n",
		`batch:2:3: runtime_s "P1M" is not a time, want seconds such as 12.5, 02:30:00, 1-02:30:00, 90m or PT2H30M`,
	},
	{
		"a date for a run time", "id,runtime_s\na,2026-03-31\n",
		`batch:2:3: runtime_s "2026-03-31" is not a time, want seconds such as 12.5, 02:30:00, 1-02:30:00, 90m or PT2H30M`,
	},
	{
		"a day that isn't", "id,runtime_s,submit\na,1,2026-02-30\n",
		`batch:2:5: arrival_s "2026-02-30" is not a date, want one such as 2026-03-31T08:00:00, from 1970 on`,
	},
	{
		"an arrival that isn't a time", "id,runtime_s,submit\na,1,tomorrow\n",
		`batch:2:5: arrival_s "tomorrow" is not a time, want seconds such as 12.5, 02:30:00, 1-02:30:00, 90m or PT2H30M, or a date such as 2026-03-31T08:00:00`,
	},
	{
		"dates and numbers", "id,runtime_s,submit\na,1,2026-03-31\nb,1,60\n",
		`batch:3:5: arrival_s is a number, want a date without a zone, as at batch:2:5`,
	},
	{
		"dates with and without a zone",
		"id,runtime_s,submit,deadline\na,1,2026-03-31,2026-04-01T00:00:00Z\n",
		`batch:2:16: deadline_s is a date with a zone, want a date without a zone, as at batch:2:5`,
	},
	{
		"a deadline as a date and no arrival", "id,runtime_s,deadline\na,1,2026-03-31\n",
		`batch:2:1: the job has no arrival, want a date, as at batch:2:5`,
	},
	{
		"memory without a unit", "id,runtime_s,ReqMem\na,1,4000\n",
		`batch:2:5: mem_gib "4000" has no unit, want "4000G" or "4000M"`,
	},
	{
		"no memory", "id,runtime_s,mem_gib\na,1,lots\n",
		`batch:2:5: mem_gib "lots" is not an amount of memory, want GiB such as 16, or 16G or 512M`,
	},
	{
		"resources without a GPU", "id,runtime_s,AllocTRES\na,1,\"cpu=4,gres/gpu:=,mem=1G\"\n",
		`batch:2:5: gpus has a count without a GPU model, want a model, or * for any other`,
	},
	{
		"Slurm's word as a model", "id,runtime_s,gpus\na,1,gpu:2;*:1\n",
		`batch:2:5: gpus model "gpu" is Slurm's word for GPUs of any model, want a model's name`,
	},
	{
		"unknown column near none", "id,colour,runtime_s\n",
		`batch:1:4: unknown column "colour", want one of ` + strings.Join(queue.Columns(), ", ") +
			`, or a name that begins with x_`,
	},
	{
		"column twice", "id,runtime_s,id\n",
		`batch:1:14: column "id" is there twice, want each once`,
	},
	{
		"no id column", "name,runtime_s\n",
		"batch:1:1: no column id, want one for the jobs' unique ids",
	},
	{
		"no column with a run time", "id,name\n",
		"batch:1:1: no column says how long a job runs, want runtime_s, workload, or all of p0_w, gamma_w, " +
			"c_w, d_s, delta, t0_s",
	},
	{
		"EDL without a coefficient", "id,app,P0,gamma,c,D,delta\n",
		"batch:1:1: no column t0, want all of P0, gamma, c, D, delta, t0",
	},
	{
		"EDL unknown column", "id,app,P0,gamma,c,D,delta,T0\n",
		`batch:1:27: unknown column "T0", want "t0" (or a name that begins with x_)`,
	},
	{
		"utilisation above 100 %", "id,runtime_s,util_pct,slot_s,gpu_mem_gb\na,1,50 101,60,4\n",
		"batch:2:5: util_pct has 101, want numbers from 0 to 100",
	},
	{
		"utilisation that isn't a number", "id,runtime_s,util_pct,slot_s,gpu_mem_gb\na,1,50 many,60,4\n",
		`batch:2:5: util_pct "many" is not a number, want one such as 12.5`,
	},
	{
		"profile without its memory", "id,runtime_s,util_pct,slot_s\na,1,50,60\n",
		"batch:2:1: gpu_mem_gb is 0, want a number above 0, up to 1e15, as a profile has all of util_pct, " +
			"slot_s and gpu_mem_gb",
	},
	{
		"profile without its series", "id,runtime_s,kappa\na,1,1.5\n",
		"batch:2:1: util_pct has 0 slots, want 1 to 10000, as a profile has all of util_pct, " +
			"slot_s and gpu_mem_gb",
	},
	{
		"kappa below 1", "id,runtime_s,util_pct,slot_s,gpu_mem_gb,kappa\na,1,50,60,4,0.9\n",
		"batch:2:13: kappa is 0.9, want a number from 1 to 1e15",
	},
	{
		"profiles of other lengths",
		"id,runtime_s,util_pct,slot_s,gpu_mem_gb\nz,1,,,\na,1,50 60,60,4\nb,1,50,60,4\n",
		`batch:4:5: util_pct has 1 slots, want 2 as that of job "a"`,
	},
	{
		"profiles of other slots", "id,runtime_s,util_pct,slot_s,gpu_mem_gb\na,1,50,60,4\nb,1,50,30,4\n",
		`batch:3:8: slot_s is 30, want 60 as that of job "a"`,
	},
	{
		"profile and share", "id,runtime_s,share,util_pct,slot_s,gpu_mem_gb\na,1,0.5,50,60,4\n",
		"batch:2:5: share is 0.5 for a job with a profile, want one of them",
	},
	{
		"too few cells", "id,runtime_s\na\n",
		"batch:2:1: cells in this row: 1, want 2 as in the header",
	},
	{
		"too many cells", "id,runtime_s\na,1,2\n",
		"batch:2:5: cells in this row: 3, want 2 as in the header",
	},
	{
		"duplicate id", "id,runtime_s\na,1\nb,1\n a,2\n",
		`batch:4:2: id "a" is used twice, first at batch:2:1, want unique ids`,
	},
	{
		"empty id", "id,runtime_s\n,1\n",
		"batch:2:1: id is empty, want a unique name for the job",
	},
	{
		"id with an escape sequence", "id,runtime_s\n\x1b[2Ja,1\n",
		`batch:2:1: id "\x1b[2Ja" has a control character, want printable text`,
	},
	{
		"id too long", "id,runtime_s\n" + strings.Repeat("a", 257) + ",1\n",
		"batch:2:1: id is 257 bytes long, want at most 256",
	},
	{
		"no number", "id,runtime_s\na,soon\n",
		`batch:2:3: runtime_s "soon" is not a time, want seconds such as 12.5, 02:30:00, 1-02:30:00, 90m or PT2H30M`,
	},
	{
		"hexadecimal number", "id,runtime_s\na,0x10\n",
		`batch:2:3: runtime_s "0x10" is not a number, want one such as 12.5`,
	},
	{
		"number too large", "id,runtime_s\na,1e999\n",
		`batch:2:3: runtime_s "1e999" is too large, want a number up to 1e15`,
	},
	{
		"NaN", "id,runtime_s\na,NaN\n",
		"batch:2:3: runtime_s is NaN, want a number from 0 to 1e15",
	},
	{
		"infinite run time", "id,runtime_s\na,inf\n",
		"batch:2:3: runtime_s is inf, want a number from 0 to 1e15",
	},
	{
		"negative run time", "id,name,runtime_s\na,n,-1\n",
		"batch:2:5: runtime_s is -1, want a number from 0 to 1e15",
	},
	{
		"negative power", "id,runtime_s,power_w\na,1,-0.5\n",
		"batch:2:5: power_w is -0.5, want a number from 0 to 1e15",
	},
	{
		"negative deadline", "id,runtime_s,deadline_s\na,1,-inf\n",
		"batch:2:5: deadline_s is -inf, want a number from 0 to 1e15, or inf for none",
	},
	{
		"deadline before arrival", "id,runtime_s,arrival_s,deadline_s\na,1,10,9.5\n",
		"batch:2:8: deadline_s is 9.5, before the arrival at 10, want a later one",
	},
	{
		"limit 0", "id,runtime_s,limit_s\na,1,0\n",
		"batch:2:5: limit_s is 0, want a number above 0, up to 1e15, or inf for none",
	},
	{
		"share 0", "id,runtime_s,share\na,1,0\n",
		"batch:2:5: share is 0, want a number above 0, up to 1",
	},
	{
		"share above 1", "id,runtime_s,share\na,1,1.5\n",
		"batch:2:5: share is 1.5, want a number above 0, up to 1",
	},
	{
		"share of several GPUs", "id,runtime_s,share,gpus\na,1,.5,V100:1;*:2\n",
		"batch:2:5: share is 0.5 for a job of 2 GPUs, want a share of one GPU, or whole GPUs",
	},
	{
		"no GPU", "id,runtime_s,gpus\na,1,0\n",
		"batch:2:5: gpus is 0, want 1 to 1024",
	},
	{
		"resources without a GPU", "id,runtime_s,AllocTRES\na,1,\"billing=4,cpu=8,mem=64G,node=1\"\n",
		`batch:2:5: gpus "billing=4,cpu=8,mem=64G,node=1" has no GPU, want one such as gpu:2 or gres/gpu=2`,
	},
	{
		"too many GPUs", "id,runtime_s,gpus\na,1,V100:1025\n",
		"batch:2:5: gpus is 1025, want 1 to 1024",
	},
	{
		"half a GPU", "id,runtime_s,gpus\na,1,1.5\n",
		`batch:2:5: gpus "1.5" is not a whole number, want 1 to 1024`,
	},
	{
		"GPU count without a model", "id,runtime_s,gpus\na,1,:2\n",
		"batch:2:5: gpus has a count without a GPU model, want a model, or * for any other",
	},
	{
		"GPU model without a count", "id,runtime_s,gpus\na,1,V100:2;K80\n",
		`batch:2:5: gpus "V100:2;K80" is not a list of GPU counts, want one such as V100:2;*:4`,
	},
	{
		"nodes that don't divide GPUs", "id,runtime_s,gpus,nodes\na,1,8,3\n",
		`batch:2:7: nodes is 3 for a job of 8 GPUs, want as many GPUs on each node`,
	},
	{
		"nodes that don't divide GPUs of a model", "id,runtime_s,gpus,Num-Nodes\na,1,V100:4;*:5,2\n",
		`batch:2:16: nodes is 2 for a job of 5 GPUs, want as many GPUs on each node`,
	},
	{
		"no nodes", "id,runtime_s,nodes\na,1,0\n",
		`batch:2:5: nodes is 0, want 1 to 1024`,
	},
	{
		"a range of nodes", "id,runtime_s,nodes\na,1,2-4\n",
		`batch:2:5: nodes "2-4" is not a whole number, want 1 to 1024`,
	},
	{
		"a part of a GPU on several nodes", "id,runtime_s,nodes,share\na,1,2,0.5\n",
		`batch:2:7: share is 0.5 for a job of 2 GPUs, want a share of one GPU, or whole GPUs`,
	},
	{
		"a profile on several nodes", "id,runtime_s,nodes,util_pct,slot_s,gpu_mem_gb\na,1,2,50,1,1\n",
		`batch:2:5: nodes is 2 for a job with a profile, want 1 for a job that may share GPUs`,
	},
	{
		"GPUs and GPUs of each node", "id,runtime_s,gpus,gpus_per_node\n",
		`batch:1:19: columns "gpus" and "gpus_per_node" are both gpus, want one of them`,
	},
	{
		"GPU model twice", "id,runtime_s,gpus\na,1,V100:2;V100:1\n",
		`batch:2:5: gpus names GPU model "V100" twice, want each once`,
	},
	{
		"part of a model", "id,p0_w,gamma_w,c_w,d_s,delta,t0_s\na,1,,3,4,0,0\n",
		"batch:2:3: the job's model has no gamma_w, want all of p0_w, gamma_w, c_w, d_s, delta, t0_s",
	},
	{
		"delta above 1", "id,p0_w,gamma_w,c_w,d_s,delta,t0_s\na,1,2,3,4,1.1,0\n",
		"batch:2:11: delta is 1.1, want a number from 0 to 1",
	},
	{
		"EDL negative power", "id,app,arrival,deadline,P0,gamma,c,D,delta,t0\na,x,0,inf,-1,2,3,4,0,0\n",
		"batch:2:11: P0 is -1, want a number from 0 to 1e15",
	},
	{
		"model without a run time", "id,p0_w,gamma_w,c_w,d_s,delta,t0_s\na,1,2,3,0,0,0\n",
		"batch:2:9: d_s is 0 and the constant time is 0 too, want a positive run time",
	},
	{
		"nothing says how long", "id,runtime_s\na,0\n",
		`batch:2:1: nothing says how long job "a" runs, want a run time, a workload or a model`,
	},
	{
		"bare quote", "id,runtime_s\na\"b,1\n",
		`batch:2:2: a " inside a cell that does not begin with one, want "…" around such a cell and "" for each quote inside`,
	},
	{
		"open quote", "id,runtime_s\n\"a,1\nb,2\n",
		`batch:3:4: a quoted cell that does not end with " and a separator or line end, in the row that begins on line 2, want "…" around such a cell and "" for each quote inside`,
	},
	{
		"text after a quote", "id,runtime_s\n\"a\"b,1\n",
		`batch:2:3: a quoted cell that does not end with " and a separator or line end, want "…" around such a cell and "" for each quote inside`,
	},
	{
		"NUL byte", "id,runtime_s\na,1\nb,\x00",
		"batch:3:3: byte 0x00 is not text, want UTF-8 or UTF-16 text",
	},
	{
		"not UTF-8", "id,runtime_s\na,1\nb\xff,1\n",
		"batch:3:2: byte 0xff is not UTF-8, want UTF-8 or UTF-16 text: iconv -f WINDOWS-1252 -t UTF-8 makes it " +
			"of a file in the usual 8-bit encoding",
	},
	{
		"carriage return in a name", "id,runtime_s,name\na,1,x\ry\n",
		`batch:2:5: name "x\ry" has a control character, want printable text`,
	},
	{
		"x_ column with an escape sequence", "id,runtime_s,x_a\na,1,\x1b[1m\n",
		`batch:2:5: x_a "\x1b[1m" has a control character, want printable text`,
	},
	{
		"x_ name with a control character", "id,runtime_s,x_\x07\n",
		`batch:1:14: column name "x_\a" has a control character, want printable text`,
	},
}
