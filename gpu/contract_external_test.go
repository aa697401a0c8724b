package gpu_test

import (
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/testkit/gputest"
)

// _ tells the tests inside of package gpu, which can't import it, what any device keeps.
var _ = gpu.SetContract(gputest.CheckReadOnly, gputest.CheckControls)
