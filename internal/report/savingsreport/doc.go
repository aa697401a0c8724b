// Package savingsreport is what was saved, and at what cost in time, as text and as a report in HTML.
package savingsreport
