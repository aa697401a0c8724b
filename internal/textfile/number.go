package textfile

import (
	"regexp"
	"strconv"
	"strings"
)

// Numbers reads the numbers of one table. A comma is a decimal comma where cells are
// separated by anything else, a point always a decimal point. Where both are used so that
// one of them may stand between thousands, the file is refused.
type Numbers struct {
	Commas bool // cells are separated by commas, so none is in a number

	sure, doubtful [2]seenNumber // by mark, of points and of commas
}

type seenNumber struct {
	text string
	at   Position
}

const (
	points = 0
	commas = 1
)

var (
	// grouped is a number with marks between thousands, or one that looks so.
	grouped = regexp.MustCompile(
		`^[-+]?\d{1,3}(?:(?:\.\d{3})+(?:,\d+)?|(?:,\d{3})+(?:\.\d+)?|(?:['’ \x{a0}\x{202f}]\d{3})+(?:[.,]\d+)?)$`)
	decimalPart = regexp.MustCompile(`^([-+]?[\d:-]*\d)([.,])(\d+)$`)
)

// Plain returns a cell with the decimal point of a programmer, and as it was if it is no number.
// A unit may follow the number. Msg and want say why it can't be read.
func (n *Numbers) Plain(text string, at Position) (plain, msg, want string) {
	if isUnambiguous(text, n.Commas) {
		return text, "", ""
	}
	end := strings.LastIndexAny(text, "0123456789") + 1
	number, unit := text[:end], text[end:]
	if groups := grouped.FindString(number); groups != "" {
		bare := strings.NewReplacer(".", "", ",", "", "'", "", "’", "", " ", "", "\u00a0", "", "\u202f", "").
			Replace(groups)
		last := strings.LastIndexAny(groups, ".,")
		marks := strings.Count(groups, ".") + strings.Count(groups, ",")
		leads := strings.TrimLeft(groups, "+-")[0] == '0'
		switch {
		case strings.ContainsAny(groups, "'’ \u00a0\u202f"), marks > 1:
			if last >= 0 && (strings.Count(groups, groups[last:last+1]) == 1) {
				fraction := len(groups) - last - 1
				bare = bare[:len(bare)-fraction] + "." + bare[len(bare)-fraction:]
			}
			return "", Quoted(text) + " has marks between thousands", Quoted(bare + unit)
		case !leads && n.Commas && groups[last] == ',':
			return "", Quoted(text) + " has a mark between thousands, or a decimal comma beside commas that " +
				"separate cells", Quoted(bare+unit) + " or " + Quoted(strings.Replace(groups, ",", ".", 1)+unit)
		case !leads && !n.Commas:
			return n.take(number, unit, last, at, true)
		}
	}
	parts := decimalPart.FindStringSubmatchIndex(number)
	if parts == nil {
		return text, "", ""
	}
	mark := parts[4] // where the second group begins
	if n.Commas {
		if number[mark] == ',' {
			return "", Quoted(text) + " has a decimal comma, and commas separate the cells",
				Quoted(number[:mark] + "." + number[mark+1:] + unit)
		}
		return text, "", ""
	}
	return n.take(number, unit, mark, at, false)
}

// take takes over a number with one mark, which may be one between thousands.
func (n *Numbers) take(number, unit string, mark int, at Position, doubtful bool) (plain, msg, want string) {
	kind := points
	if number[mark] == ',' {
		kind = commas
	}
	this := seenNumber{number, at}
	other := n.sure[1-kind]
	if other.text == "" {
		other = n.doubtful[1-kind]
	}
	if !doubtful {
		other = n.doubtful[1-kind]
	}
	if other.text != "" {
		mayBe, has := Quoted(number), Quoted(other.text)+" at "+other.at.String()
		if !doubtful {
			mayBe, has, number = Quoted(other.text)+" at "+other.at.String(), Quoted(number), other.text
		}
		return "", mayBe + " may be " + strings.NewReplacer(".", "", ",", "").Replace(number) + " or " +
				strings.Replace(number, ",", ".", 1) + ": " + has + " has the other mark",
			"numbers of one kind, without marks between thousands"
	}
	if doubtful && n.doubtful[kind].text == "" {
		n.doubtful[kind] = this
	}
	if !doubtful && n.sure[kind].text == "" {
		n.sure[kind] = this
	}
	return number[:mark] + "." + number[mark+1:] + unit, "", ""
}

// Doubt says which number was taken with a decimal mark that may stand between thousands,
// and no other number of the file shows that it doesn't; nil: there is none.
func (n *Numbers) Doubt() error {
	for kind := range n.doubtful {
		if d := n.doubtful[kind]; d.text != "" && n.sure[kind].text == "" {
			return &SyntaxError{
				Pos: d.at,
				Msg: Quoted(d.text) + " is read as " + strings.Replace(d.text, ",", ".", 1) +
					": no number of the file shows that its mark doesn't stand between thousands",
			}
		}
	}
	return nil
}

// isUnambiguous reports whether a cell has no mark that may mean two things.
func isUnambiguous(text string, separatedByCommas bool) bool {
	dots := 0
	for i := range len(text) {
		switch c := text[i]; {
		case c == '.':
			dots++
		case c == ',' || c == '\'' || c >= 0x80, c == ' ' && i+1 < len(text) && text[i+1]-'0' < 10:
			return false
		}
	}
	return dots == 0 || dots == 1 && separatedByCommas
}

// Parse returns a plain number in the quantity's own unit. The cell may state its unit itself.
func (q Quantity) Parse(text string, factor float64) (float64, bool) {
	number := strings.TrimSpace(text)
	if end := strings.LastIndexAny(number, "0123456789.") + 1; end > 0 && end < len(number) {
		if own, ok := q.InUnit(strings.TrimSpace(number[end:])); ok {
			number, factor = number[:end], own
		}
	}
	value, err := strconv.ParseFloat(number, 64)
	if err != nil || strings.ContainsAny(number, "xX_pP") {
		return 0, false
	}
	return Scaled(number, value, factor), true
}
