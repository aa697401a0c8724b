package share

// NamedPolicy is a policy of the registry.
type NamedPolicy struct {
	Name   string
	About  string
	Rule   Rule
	Clocks Clocks
}

// Policies returns those that place one task at a time.
func Policies() []NamedPolicy {
	return []NamedPolicy{
		{"cats", "algorithms 1 to 4 as printed: GPUs that sleep are candidates, too", CATS(), AdaptedClock},
		{
			"cats-active", "the same, but GPUs wake only where no running one has the memory",
			ScoreRule{onlyRunning(hasSpareMemory), dissimilarity, CATS()},
			AdaptedClock,
		},
		{
			"cats-thresholds",
			"running GPUs with correlation and mean utilisation below thresholds, else one wakes",
			ScoreRule{onlyRunning(isWithinThresholds), dissimilarity, wakeGPU},
			AdaptedClock,
		},
		{
			"hotcloud", "first running GPU whose mean utilisation stays within 100 %, at f_max",
			HotCloud(),
			MaxClock,
		},
		{
			"hotcloud-lowest-f", "the same placement at the lowest frequency that keeps the SLA",
			HotCloud(),
			LowestClock,
		},
		{
			"first", "as hotcloud by the first slot's utilisation",
			ScoreRule{onlyRunning(hasRoomAtFirst), nil, wakeGPU},
			MaxClock,
		},
		{"bf", "best fit: least utilisation and memory left", ScoreRule{hasRoomFor, leftOver, wakeGPU}, MaxClock},
		{
			"dp", "least dot product of demand and what is free",
			ScoreRule{hasRoomFor, dotProduct, wakeGPU},
			MaxClock,
		},
		{"fgd", "least rise of fragmentation", ScoreRule{hasRoomFor, addedFragmentation, wakeGPU}, MaxClock},
		{
			"online-sla", "running GPU whose frequency rises least within the SLA, else the best one wakes",
			OnlineSLA{},
			LowestClock,
		},
		{
			"cats-safe", "our best online: tasks go where imagined futures end with least power, " +
				"everybody's SLA kept", CATSSafe{}, LowestClock,
		},
	}
}
