package correlate_test

import (
	"fmt"
	"math"

	"github.com/epplan/epplan/planner/correlate"
)

// A sample that one of the series lacks is left out, and counted.
func ExamplePearson() {
	a := []float64{20, 40, math.NaN(), 80}
	b := []float64{90, 70, 50, 30}
	r := correlate.Pearson(a, b)
	fmt.Printf("%.3f of %d samples, %d gaps\n", r.R, r.Samples, r.Gaps)
	fmt.Println(correlate.Pearson(a, []float64{5, 5, 5, 5}).OK)
	// Output:
	// -1.000 of 3 samples, 1 gaps
	// false
}

// Samples as they come: each GPU with those that it might share work with.
func ExampleCandidates() {
	c, err := correlate.NewCandidates(3, 4, [][]int{{1, 2}, {0}, {0}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, sample := range [][]float64{{10, 90, 20}, {30, 70, 40}, {20, 80, 30}, {60, 40, 90}} {
		if err := c.AddSample(sample); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Printf("GPU 0 with GPU 1: %.2f, with GPU 2: %.2f\n", c.Pearson(0, 0).R, c.Pearson(0, 1).R)
	// Output:
	// GPU 0 with GPU 1: -1.00, with GPU 2: 0.99
}
