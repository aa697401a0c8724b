package report

import (
	"bufio"
	"strings"
)

// latexSymbols are the characters that act in LaTeX, or that its default fonts lack, as what prints them.
var latexSymbols = map[rune]string{ //nolint:gochecknoglobals // constant
	'\\': `\textbackslash{}`, '{': `\{`, '}': `\}`, '$': `\$`, '&': `\&`, '#': `\#`, '%': `\%`, '_': `\_`,
	'~': `\textasciitilde{}`, '^': `\textasciicircum{}`, '<': `\textless{}`, '>': `\textgreater{}`,
	'|': `\textbar{}`, '"': `{\char34}`, '`': `\textasciigrave{}`,
	'[': `{[}`, ']': `{]}`, '*': `{*}`, // after the end of a row they would be its options
	'–': `--`, '—': `---`, '…': `\ldots{}`, '−': `$-$`, '×': `$\times$`, '±': `$\pm$`, '·': `$\cdot$`, '→': `$\to$`,
	'≤': `$\leq$`, '≥': `$\geq$`, '≈': `$\approx$`, '∞': `$\infty$`, '²': `$^2$`, '³': `$^3$`, '€': `\texteuro{}`,
	'₂': `$_2$`, '°': `$^\circ$`, 'µ': `$\mu$`,
	'α': `$\alpha$`, 'β': `$\beta$`, 'γ': `$\gamma$`, 'δ': `$\delta$`, 'θ': `$\theta$`, 'κ': `$\kappa$`,
	'λ': `$\lambda$`, 'μ': `$\mu$`, 'ξ': `$\xi$`, 'ρ': `$\rho$`, 'σ': `$\sigma$`, 'Δ': `$\Delta$`,
}

// latexText returns a text so that LaTeX prints it as it is.
func latexText(text string) string {
	var b strings.Builder
	last := ' '
	for _, r := range text {
		if r == last && strings.ContainsRune(`-',!?`, r) { // two of them would be one other character
			b.WriteString(`{}`)
		}
		last = r
		if symbol, ok := latexSymbols[r]; ok {
			b.WriteString(symbol)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// writeLaTeX writes a table as a tabular that needs no package, units in the headings.
func writeLaTeX(out *bufio.Writer, columns []textColumn, rows int) {
	line := func(cell func(*textColumn) string) {
		cells := make([]string, len(columns))
		for i := range columns {
			cells[i] = latexText(cell(&columns[i]))
		}
		WriteLines(out, MarkupRow+strings.Join(cells, " & ")+` \\`)
	}
	aligned := make([]byte, len(columns))
	for i := range columns {
		aligned[i] = 'r'
		if columns[i].left {
			aligned[i] = 'l'
		}
	}
	WriteLines(out, MarkupRow+`\begin{tabular}{`+string(aligned)+`}`, MarkupRow+`\hline`)
	line((*textColumn).heading)
	WriteLines(out, MarkupRow+`\hline`)
	for i := range rows {
		line(func(c *textColumn) string { return c.cells[i] })
	}
	WriteLines(out, MarkupRow+`\hline`, MarkupRow+`\end{tabular}`, MarkupRow)
}
