package sharing_test

import (
	"fmt"
	"math"

	"github.com/epplan/epplan/planner/sharing"
)

// A sample that one of the series lacks is left out, and counted.
func ExamplePearson() {
	a := []float64{20, 40, math.NaN(), 80}
	b := []float64{90, 70, 50, 30}
	r := sharing.Pearson(a, b)
	fmt.Printf("%.3f of %d samples, %d gaps\n", r.R, r.Samples, r.Gaps)
	fmt.Println(sharing.Pearson(a, []float64{5, 5, 5, 5}).OK)
	// Output:
	// -1.000 of 3 samples, 1 gaps
	// false
}
