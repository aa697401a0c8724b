package config

// LiveContention returns the file with what sharing a GPU costs in time where epd puts
// jobs beside each other; empty where none is named. [sharing.ReadCurve] reads it.
func (c *Config) LiveContention() string {
	return c.resolvePath("live.sharing.contention", c.Live.Sharing.Contention)
}

// LiveSharing says how jobs that ask for parts of GPUs are put beside each other.
type LiveSharing struct {
	// Weights reports whether the nodes with shared GPUs get weights by how well
	// the next of these jobs fits beside what runs there.
	Weights bool
	// Runs is on how many runs that had their GPUs alone what is known of a
	// workload must rest.
	Runs int
	// Spread is how far runs may be apart for their workload to be known:
	// utilisation, 0 to 1, and part of the run time.
	Spread float64
	// Slowdown is how many times its time alone a job may take.
	Slowdown float64
	// Contention is the file with what sharing a GPU costs in time, as it is
	// written; empty: load alone counts. [Config.LiveContention] is where it is.
	Contention string
}

func defaultSharing() LiveSharing { return LiveSharing{Runs: 3, Spread: 0.25, Slowdown: 1.2} }

func (s *LiveSharing) fields() []field {
	const fewest, most = 2, 8
	return []field{
		boolField("weights",
			"Whether epd also sets nodes' weights by where the next job that asks for a part of a GPU (shard\n"+
				"or mps) fits best.", &s.Weights),
		intField("runs", "Least runs with GPUs to themselves for a workload's profile.", &s.Runs, fewest, most),
		numberField("spread",
			"How far these may differ: in utilisation, from 0 to 1, and as a fraction of the run time.",
			&s.Spread, numberRange{max: 1, above: true}),
		numberField("slowdown", "How many times its time alone a job on a shared GPU may take.", &s.Slowdown,
			numberRange{min: 1, max: 10}),
		textField("contention",
			"File with the time that sharing a GPU costs, from epplab contention, beside this file unless its\n"+
				"path is absolute; empty: 140 % of work in a slot takes 1.4 slots.",
			&s.Contention),
	}
}
