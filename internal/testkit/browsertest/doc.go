// Package browsertest looks at pages in a real browser, for tests: what they
// say and do, whether they ask anything of anybody else, whether they fit a
// telephone, what a keyboard reaches, and which barriers axe-core finds.
//
// A test binary has one headless Chromium, started by the first page that is
// opened and ended by [Run]; each page is a tab with a profile of its own. Most
// tests call [Inspect], which looks at a page in all of its appearances.
package browsertest
