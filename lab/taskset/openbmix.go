package taskset

// The parameters of synthetic clusters and task lists, fitted to aggregate
// figures of Alibaba's openb trace (cluster-trace-gpu-v2023) and rounded:
// shares, sizes to half a vCPU and to tenths or hundredths of a GPU, memory by
// size class, quartiles of times. The names of GPU models are the trace's.

// nodeShape is a kind of node and its share, by mille.
type nodeShape struct {
	share    float64
	model    string
	gpus     int
	vcpu, gb int64
}

var nodeShapes = []nodeShape{
	{453, "G2", 8, 96, 384},
	{319, "T4", 2, 104, 512},
	{88, "P100", 2, 16, 120},
	{32, "G3", 8, 128, 768},
	{23, "V100M16", 4, 32, 128},
	{18, "P100", 2, 64, 256},
	{17, "V100M32", 8, 96, 768},
	{16, "V100M16", 1, 8, 32},
	{14, "T4", 4, 96, 384},
	{7, "V100M32", 4, 48, 368},
	{6, "V100M16", 8, 64, 256},
	{4, "P100", 1, 8, 60},
	{2, "A10", 1, 128, 1024},
}

// taskShape is a size of task and its share, by mille.
type taskShape struct {
	share       float64
	gpus, milli int
	vcpu, gb    float64
}

// taskShapes are the sizes that most tasks have; see oddSizeShare for the others.
var taskShapes = []taskShape{
	{25, 0, 0, 8, 30},
	{45, 0, 0, 12.5, 56},
	{16, 0, 0, 15.5, 50},
	{12, 0, 0, 16.5, 50},
	{36, 0, 0, 32, 48},

	{3, 1, 300, 1, 2},
	{127, 1, 800, 3, 5.5},
	{4, 1, 800, 4, 15},
	{9, 1, 600, 3, 5.5},
	{9, 1, 550, 4, 8},
	{6, 1, 370, 4, 8},
	{30, 1, 320, 4, 15},
	{26, 1, 220, 4, 15},
	{8, 1, 150, 4, 15},
	{15, 1, 460, 6, 20},
	{3, 1, 150, 6, 20},
	{45, 1, 470, 8, 30},
	{9, 1, 320, 8, 30},
	{5, 1, 230, 8, 30},
	{2, 1, 650, 8, 30},
	{48, 1, 470, 12, 46},
	{29, 1, 650, 12, 46},

	{60, 1, 1000, 3, 5.5},
	{21, 1, 1000, 4, 15},
	{21, 1, 1000, 8, 32},
	{25, 1, 1000, 10, 24},
	{78, 1, 1000, 11, 46},
	{110, 1, 1000, 11.5, 46},
	{48, 1, 1000, 12, 44},
	{20, 1, 1000, 12.5, 44},
	{12, 1, 1000, 14, 60},
	{20, 1, 1000, 15.5, 60},
	{20, 1, 1000, 16, 60},
	{33, 1, 1000, 18.5, 76},
	{12, 1, 1000, 24, 90},

	{2, 2, 1000, 17, 80},
	{1.5, 4, 1000, 32, 130},
	{0.4, 4, 1000, 60, 310},
	{2.6, 8, 1000, 64, 260},
	{2.2, 8, 1000, 88, 320},
	{0.6, 8, 1000, 120, 650},
}

// Shares of tasks. Odd ones have half to one and a half times the CPU and GPU
// share of their shape; long ones last for days to months. Those that are never
// scheduled differ by shape; of the others some are scheduled at once and some
// within three seconds.
const (
	oddSizeShare         = 0.03
	longWaitShare        = 0.012
	neverScheduledCPU    = 0.033
	neverScheduledShared = 0.16
	neverScheduledWhole  = 0.09
	noWaitShare          = 0.32
	shortWaitShare       = 0.30
)

// logNormal is a log-normal distribution of seconds.
type logNormal struct{ median, sigma float64 }

var (
	lifetime               = logNormal{540, 1.83}
	neverScheduledLifetime = logNormal{94, 0.87}
	longWait               = logNormal{50, 1.5}
)

// Times between creations have a Weibull distribution; long lifetimes a
// log-uniform one. The list begins at firstCreation, so that tasks which were
// there before have positive times: those that last for beforeList or longer
// end while the list lasts. All are seconds.
const (
	gapShape, gapScale = 0.7, 272.0
	longMin, longMax   = 2e4, 1.25e7
	firstCreation      = 1e7
	beforeList         = 1e5
)
