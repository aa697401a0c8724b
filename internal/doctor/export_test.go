package doctor

import (
	"context"
	"time"
)

// Deaf returns a check that doesn't hear when its time is over.
func Deaf(context.Context, *examination) []Finding {
	time.Sleep(time.Minute) //nolint:forbidigo // of a test's bubble
	return nil
}
