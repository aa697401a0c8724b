s=open('prior.go').read()
s=s.replace('''	p.joint.cov = p.smooth(learnCurves(apart, nil, 0, Noise{}), apart[0], part)
''','''	curves := learnCurves(apart, nil, 0, Noise{})
	p.joint.cov = p.smooth(curves, curves.scatter(apart), apart[0], part)
''')
a=s.index("// smooth is"); 
s=s[:a]+'''// scatter are the variances of ln time at each setting, and then of ln power,
// around the workloads' own quadratics. Those that are common to all settings
// count as some workloads more.
func (c *Curves) scatter(all [][]measure) []float64 {
	n := len(all[0])
	variance := make([]float64, 2*n)
	for _, list := range all {
		own := c.condition(list, [2]float64{})
		for i := range list {
			m := &list[i]
			variance[i] += sq(m.time - along(own.mean[:terms], &m.row))
			variance[n+i] += sq(m.power - along(own.mean[terms:], &m.row))
		}
	}
	count := float64(len(all))
	for i := range n {
		variance[i] = (variance[i] + evenness*sq(c.TimeResidual)) / (count + evenness)
		variance[n+i] = (variance[n+i] + evenness*sq(c.PowerResidual)) / (count + evenness)
	}
	return variance
}

// smooth is the covariance that curves and a residual give, times a part.
func (p *Prior) smooth(c *Curves, scatter []float64, list []measure, part float64) []float64 {
	n := len(list)
	cov := make([]float64, 4*n*n)
	for a := range 2 * n {
		for b := range 2 * n {
			sum := 0.0
			for i, x := range list[a%n].row {
				for k, y := range list[b%n].row {
					sum += x * y * c.Covariance[(a/n*terms+i)*size+b/n*terms+k]
				}
			}
			if a/n == b/n {
				sum += math.Sqrt(scatter[a]*scatter[b]) * kinship(&list[a%n], &list[b%n])
			}
			cov[a*2*n+b] = part * sum
		}
	}
	return cov
}

// kinship is the correlation of what quadratics leave of ln time or ln power at
// two settings.
func kinship(a, b *measure) float64 {
	if a.at == b.at {
		return 1
	}
	return alike * math.Exp(-(sq(a.row[1]-b.row[1])+sq(a.row[3]-b.row[3]))/sq(reach)/2)
}
'''
s=s.replace('''	alike = 0.5
)''','''	alike = 0.5
	// evenness is how many workloads a common variance of residuals counts for,
	// beside that at the setting.
	evenness = 5
)''')
open('prior.go','w').write(s)
