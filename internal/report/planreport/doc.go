// Package planreport says what a plan came to, and how plans compare: as tables,
// JSON and CSV, as a picture of who runs where and when, and as reports in HTML.
package planreport
