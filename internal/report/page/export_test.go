package page

import "html/template"

// Render makes HTML of a part. Values of other types are refused.
func Render(part any) (template.HTML, error) { return render(partTemplates)(part) }

// Tokens returns the colours, in the order of the stylesheet.
func Tokens() []Token { return tokens }
