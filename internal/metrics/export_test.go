package metrics

import "github.com/prometheus/client_golang/prometheus"

// Registry is what is scraped.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }
