// Package page is how everything looks that people open in a browser: reports
// in a file and the pages of epd. It has the stylesheet, the frame of a page,
// and the parts that pages are made of; it knows nothing of plans and jobs.
//
// # Parts
//
// A part is a value that is shown in one way: [*Table], [*Figure], [Tiles],
// [Facts], [*Notice], [*Details], [Text], [*Group]. The function part of templates makes HTML of
// one:
//
//	{{part .Jobs}}
//
// Parts are for screen readers and keyboards too: tables have captions and
// headers with a scope, and scroll in a region of their own that takes the
// focus; pictures have a title and a description; what a colour says a word says
// as well.
//
// # Frames
//
// [Templates] has the frame and the function part. A page adds a template named
// main to it, which is given Frame.Main, and is written by [Execute]:
//
//	t := template.Must(page.Templates().Parse(`{{define "main"}}<h1>Jobs</h1>{{part .Jobs}}{{end}}`))
//	err := page.Execute(w, t, &page.Frame{Title: "Jobs", Style: "/style.css", Nav: links, Main: data})
//
// A template named head, given the frame, adds to the head of the page, one named
// foot, given the frame too, is shown in the footer. Each page has one h1, in main.
//
// [Frame.Style] is the address of the stylesheet, which is [Stylesheet]; without
// one it is in the page itself. No part has inline styles or event handlers, so
// that pages can be served with a policy of style-src 'self'; script-src 'self'.
//
// [WriteReport] writes a page that stands alone in a file, made of sections.
//
// # Text
//
// All text may be hostile: parts escape it for HTML, and show control characters
// and marks that reverse the direction of writing as escapes. In templates of
// your own do that with show: {{show .Name}}.
//
// # Classes
//
// For markup of your own the stylesheet has: n (a number: right-aligned, never
// wrapped), muted, badge with info, good, warn or bad, actions (a row of buttons
// or links), columns (parts beside each other where there is room), fields (the
// labels and inputs of a form), hidden-text (for screen readers alone), card, and
// code for monospaced text. Pictures made by internal/report have their colours
// from it if they are inline.
//
// # Tokens
//
// Colours are CSS variables with a value for light and one for dark, which the
// viewer's system chooses; paper is light. [Tokens] lists them. Never write a
// colour elsewhere: a test holds the contrast of these.
package page
