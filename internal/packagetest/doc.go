// Package packagetest tests the deb and rpm packages: it builds them twice, as
// of two versions, installs, upgrades, removes and purges them in folders of its
// own, and looks at what they bring. It has no code beside its tests.
package packagetest
