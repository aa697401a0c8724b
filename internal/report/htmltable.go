package report

import "github.com/epplan/epplan/internal/report/page"

// Page returns the table as a part of a page, with the columns and the numbers that
// people get, at most so many rows; a negative number is all of them.
func (t *Table) Page(caption, note string, most int) *page.Table {
	rows, more := t.firstRows(most)
	out := &page.Table{Caption: caption, Note: note, Rows: make([][]page.Cell, len(rows))}
	for _, c := range t.columns(func(c *Column) bool { return c.Head != "" }) {
		col := &t.Columns[c]
		laid := col.layOut(rows, c, t.scale(rows, c))
		if !laid.filled {
			continue
		}
		out.Columns = append(out.Columns, page.Column{Head: laid.head, Unit: laid.note, Number: !col.Left})
		for i := range rows {
			cell := page.Cell{Text: laid.cells[i]}
			if href := rows[i][c].href; href != nil {
				cell.Href = *href
			}
			out.Rows[i] = append(out.Rows[i], cell)
		}
	}
	if more > 0 {
		out.More = FormatCount(more) + " more aren't shown here; --json and --csv have all of them."
	}
	return out
}
