// Package queue holds what is known of GPU jobs before they run: [Job],
// [Batch], the [Stream] in which they arrive, and readers and writers of batch
// files.
//
// A batch file is CSV or JSON. Both use the same names, which end in the unit:
//
//	id                       required, unique, 1 to 256 bytes
//	name, user               shown to people
//	workload                 name of a model in the models file
//	arrival_s                time of submission (0)
//	deadline_s               time by which the job must end, on the same clock (none)
//	limit_s                  time limit (none)
//	runtime_s                run time at default clocks (unknown)
//	runtime_gpu_model        GPU model on which runtime_s and power_w were measured;
//	                         *: the same on all (needed if several are possible)
//	power_w                  mean power of one GPU at default clocks (unknown)
//	runtime_s.MODEL, power_w.MODEL
//	                         the same for one GPU model, a column for each:
//	                         runtime_s.V100, runtime_s.GTX1080Ti
//	gpus                     GPUs of the whole job, on all its nodes: 2, or per GPU
//	                         model V100:2;GTX1080Ti:4;*:4 (1 on each node)
//	gpu_model                GPU model that the job must run on, or several: A100;H100 (any)
//	nodes                    number of nodes, which start together and have equal
//	                         parts of the job (as few as hold its GPUs)
//	share                    part of one GPU, above 0 and up to 1 (1)
//	cpus, mem_gib            CPU cores and memory of the whole job (0)
//	util_pct, slot_s, gpu_mem_gb
//	                         use of each GPU, for sharing: percent by slot, "40 60 35",
//	                         seconds of a slot, GB: all three or none
//	kappa                    highest acceptable slowdown by sharing, as a multiple of the
//	                         run time alone (1.2)
//	p0_w, gamma_w, c_w, d_s, delta, t0_s
//	                         the job's own DVFS model: all six or none
//	x_…                      kept with the job, never interpreted
//
// In CSV these are columns, found by the header in any order; an empty cell is the
// default. In JSON they are the keys of a job, gpus may also be an object
// {"V100":2,"*":4}, and so may runtime_s and power_w; util_pct an array, and the six
// coefficients are the keys of an object "model". A JSON file is {"jobs":[…]}, a bare
// array of jobs, or one job after another (JSON lines). An unknown name is an error
// unless it begins with x_. Each job must say how long it runs: by a model, a workload or
// a run time. A deadline or a limit may be written inf.
//
// Names may be spelled as sacct, squeue and people spell them (jobid, Elapsed,
// time_limit, gres), and as the caller of [ReadWith] says; times as 02:30:00,
// 1-02:30:00, 90m, PT2H30M, moments as dates; GPUs as gpu:2, memory as 16G; under
// gpus_per_node, gres and ReqGRES GPUs are those of each node. A column's name may state
// the unit of its numbers. Cells may be separated by semicolons, tabs or bars. What may mean
// two things is an error.
//
// The third format, "edl", is CSV with the columns of the EDL paper's
// notation: id, app, arrival, deadline, P0, gamma, c, D, delta, t0, and
// optionally limit and gpus.
//
// Bad input is a [SyntaxError] with file, line and column of the first
// offending value, and nothing is half-loaded. Text is UTF-8 or UTF-16, as
// internal/textfile opens it.
//
// The package is pure: no files, no clocks, no global random numbers.
package queue
