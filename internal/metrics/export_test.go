package metrics

import "github.com/prometheus/client_golang/prometheus"

// Registry returns what is scraped.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }
