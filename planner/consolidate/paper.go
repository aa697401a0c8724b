package consolidate

// PaperPhysics is the paper's V100: power of eq. 3, time of eq. 5, and levels
// from 135 to 1350 MHz. The paper doesn't give its step; 45 MHz is that of
// data/cats.
func PaperPhysics() Physics {
	const lowest, highest, step = 135, 1350, 45
	p := Physics{BaseW: 23.3, WPerMHz: 0.09, Beta: 0.91, StepMHz: step}
	for mhz := lowest; mhz <= highest; mhz += step {
		p.LevelsMHz = append(p.LevelsMHz, float64(mhz))
	}
	return p
}

// PaperSLA is how many times its time alone at f_max a task may take (section
// 2.1.2).
const PaperSLA = 1.2
