// Package trace reads tables of measurements that others recorded: time and power over
// clock settings and power caps ([ReadMeasurements]).
package trace
