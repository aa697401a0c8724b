// Package setup reads what a batch is planned with (configuration, cluster, models, the batch itself) as the
// flags of plan, compare and explain say, and joins it to a problem.
package setup
