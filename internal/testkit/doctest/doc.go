// Package doctest finds the command blocks of the project's pages, and says
// which test runs each of them. A page's blocks belong to the runner that the
// registry gives the page to, unless the line before a block says otherwise:
//
//	<!-- run by NAME -->
//	<!-- not run: REASON -->
//
// Its own tests demand that every block belongs to a runner whose test is there,
// that every link, heading and picture named is there, that tables have rows as
// wide as their heads, and that SUMMARY.md has every page. Only tests import it.
package doctest
