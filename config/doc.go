// Package config reads and writes the TOML files of the project: the
// configuration ([Config]), the GPU models ([Profiles]) and the models fitted
// to workloads ([Models]). No other package parses TOML.
//
// All three are read strictly. A file with an unknown key, a value of the wrong
// type or one out of range is refused as a whole, with a [FileError] that names
// the file, line and column of every fault and, for a misspelt name, the
// nearest one that exists. Nothing is half-loaded. Numbers are finite and at
// most 1e15; keys end in their unit.
//
// Each key is a field, which reads it, writes it and explains it: [DefaultText] and
// docs/reference/config.md are made from the same fields, those of [[gpu]], [[cpu]] and
// [[model]] tables among them.
package config
