// Package storetest makes databases with very many jobs, for tests and benchmarks
// of what is asked of them.
package storetest
