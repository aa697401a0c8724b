// Package config reads and writes the TOML files of the project: the
// configuration ([Config]), the GPU models ([Profiles]) and the models fitted
// to workloads ([Models]). No other package parses TOML.
//
// All three are read strictly. A file with an unknown key, a value of the wrong
// type or one out of range is refused as a whole, with a [FileError] that names
// the file, line and column of every fault and, for a misspelt name, the
// nearest one that exists. Nothing is half-loaded. Numbers are finite and at
// most 1e15; keys end in their unit.
//
// [DefaultText] explains the keys of a configuration, which may have [[gpu]]
// tables too. A [[gpu]] table is a GPU model:
//
//	name                 required
//	aliases              other names, such as the driver's
//	default_core_mhz, default_mem_mhz
//	                     default clocks, one of the supported ones
//	clocks               supported clocks, [{ mem_mhz = …, core_mhz = … }, …],
//	                     each list [877, …] or { from = …, to = …, step = … }
//	range                instead of clocks: "wide" or "narrow", a range of the
//	                     EDL paper
//	idle_w               required: watts of one idle GPU
//	busy_w               watts of one GPU with anything allocated on it; with it,
//	                     clocks aren't needed for placing tasks
//	energy_weight        what a watt of its nodes counts, by price or carbon for
//	                     example, when places for tasks are compared (1)
//	host_w_per_gpu       watts of CPUs, fans and memory, by GPU (25)
//	voltage              core voltage as [[MHz, volts], …] ("paper": its curve)
//	source               where the values come from
//
// A [[cpu]] table is a CPU model; the first one is that of nodes that don't say:
//
//	name, cores          required: cores of a package
//	threads_per_core     vCPUs of a core (1)
//	idle_w, busy_w       required: watts of a package with no core in use, and
//	                     with any in use
//	sleep_w              watts of a whole node when it sleeps (0)
//	source               where the values come from
//
// A [[model]] table is a workload on a GPU model:
//
//	workload, gpu_model  required
//	form                 required: "paper", or time+power of [dvfsmodel.Form]
//	base_core_mhz, base_mem_mhz
//	                     required: clocks that the coefficients are relative to
//	p0_w, gamma_w, c_w, d_s, delta, t0_s
//	                     required for "paper": [dvfsmodel.Params]
//	coefficients         required for any other form: a table such as
//	                     time.log_t = 0.1, by [dvfsmodel.Fitted.Coefficients]
//	std_errors           a table by the same names
//	settings             distinct settings that it was fitted to
//	time_mape, power_mape
//	                     errors at settings left out, fractions
//	source               where the samples came from
package config
