package capability

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/acpod/acpod/actors/capability/search"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// Query is one search_capabilities.
type Query struct {
	Text   string // empty = everything, in name order
	Limit  int    // 1 to 100, 0 = 20
	Cursor string // next_cursor of the page before
	Names  bool   // detail = "names": no descriptions and no schemas
}

// Bounds of a page.
const (
	DefaultPage = 20
	MaxPage     = 100
)

// search is the page of the catalog that a query asks for. It is not written yet,
// so that its text can be paid for first. The cursor is an offset bound to the query's words: a catalog
// that changed between two pages may show an entry twice or not at all, and the
// total says so.
func (v *View) search(q Query) (*page, *Refusal) {
	switch {
	case q.Limit == 0:
		q.Limit = DefaultPage
	case q.Limit < 1 || q.Limit > MaxPage:
		return nil, &Refusal{Code: BadArguments, Text: "limit must be 1 to " + strconv.Itoa(MaxPage)}
	}
	from, ok := q.offset()
	if !ok {
		return nil, &Refusal{Code: BadArguments, Text: "cursor is not the next_cursor of this query; search again without it"}
	}
	list, held := v.catalog()
	if strings.TrimSpace(q.Text) != "" {
		entries := make([]search.Entry, len(list))
		for i, c := range list {
			entries[i] = search.Entry{Doc: c.Tool.doc(), Server: c.Server}
		}
		ranked := search.Rank(q.Text, entries)
		found := make([]Capability, len(ranked))
		for i, at := range ranked {
			found[i] = list[at]
		}
		list = found
	}
	p := &page{namesOnly: q.Names, unavailable: v.unavailable(held), pending: v.Pending(), total: len(list)}
	list = list[min(from, len(list)):]
	p.take(list, q.Limit, cmp.Or(v.pageBytes, 8<<20))
	if n := len(p.list); n < len(list) {
		p.next = q.cursor(from + n)
	}
	return p, nil
}

// searchBytes is what a search takes while it works: each name's entry in the catalog, its rank and its place in both orders.
func (v *View) searchBytes() int64 { return 320 * int64(v.names.count()) }

// page is one page of a search before it is written: what stands in it, and the most
// bytes that its text can have.
type page struct {
	list        []Capability
	unavailable []Unavailable
	pending     []string
	namesOnly   bool
	next        string
	total       int
	size        int64
}

// take chooses the first entries that fit: whole ones, and one at least, so that
// whoever follows the cursors gets to the end.
func (p *page) take(list []Capability, limit int, most int64) {
	const frame, entry = 256, 160 // beside the texts
	p.size = frame
	for _, u := range p.unavailable {
		p.size += 64 + quoted(u.Provider) + quoted(u.Error)
	}
	for _, name := range p.pending {
		p.size += 1 + quoted(name)
	}
	for _, c := range list[:min(limit, len(list))] {
		n := entry + quoted(c.Name) + quoted(c.Provider)
		if !p.namesOnly {
			n += quoted(c.Tool.Description) + mended(c.Tool.InputSchema)
		}
		if len(p.list) > 0 && p.size+n > most {
			return
		}
		p.list = append(p.list, c)
		p.size += n
	}
}

// quoted is the most bytes that a text has as a JSON string.
func quoted(s string) int64 {
	n := int64(2 + len(s))
	for _, r := range s {
		switch {
		case r < ' ' || r == 0x7f:
			n += 5
		case r == '"' || r == '\\':
			n++
		case r == utf8.RuneError, r == 0x2028, r == 0x2029:
			n += 5
		}
	}
	return n
}

// mended is the most bytes that JSON has once it is text: each byte that is no UTF-8
// becomes three.
func mended(raw []byte) int64 {
	if utf8.Valid(raw) {
		return int64(max(len(raw), 2))
	}
	return 3 * int64(len(raw))
}

// text writes the page. Schemas are spliced as the server wrote them.
func (p *page) text() []byte {
	b := make([]byte, 0, p.size)
	b = append(b, `{"capabilities":[`...)
	for i, c := range p.list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"name":`...)
		b = jsonrpc.AppendString(b, c.Name)
		if !p.namesOnly {
			b = append(b, `,"description":`...)
			b = jsonrpc.AppendString(b, c.Tool.Description)
			b = append(b, `,"input_schema":`...)
			if len(c.Tool.InputSchema) > 0 {
				b = append(b, c.Tool.InputSchema...)
			} else {
				b = append(b, `{}`...)
			}
		}
		b = append(b, `,"provider":`...)
		b = jsonrpc.AppendString(b, c.Provider)
		b = append(b, `,"risk":"`...)
		b = append(b, c.Tool.Risk()...)
		b = append(b, `","availability":"`...)
		b = append(b, c.Availability...)
		b = append(b, `"}`...)
	}
	b = append(b, `],"unavailable":[`...)
	for i, u := range p.unavailable {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"provider":`...)
		b = jsonrpc.AppendString(b, u.Provider)
		b = append(b, `,"error":`...)
		b = jsonrpc.AppendString(b, u.Error)
		b = append(b, '}')
	}
	b = append(b, `],"pending":[`...)
	for i, name := range p.pending {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsonrpc.AppendString(b, name)
	}
	b = append(b, ']')
	if p.next != "" {
		b = append(b, `,"next_cursor":`...)
		b = jsonrpc.AppendString(b, p.next)
	}
	b = append(b, `,"total":`...)
	b = strconv.AppendInt(b, int64(p.total), 10)
	return append(b, '}')
}

// cursor is where the next page begins, bound to the query's words.
func (q Query) cursor(at int) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(at) + "." + q.mark()))
}

// offset reads a cursor back; false when it is not one of this query.
func (q Query) offset() (int, bool) {
	if q.Cursor == "" {
		return 0, true
	}
	raw, err := base64.RawURLEncoding.DecodeString(q.Cursor)
	if err != nil {
		return 0, false
	}
	number, mark, ok := strings.Cut(string(raw), ".")
	at, err := strconv.Atoi(number)
	return at, ok && err == nil && at >= 0 && mark == q.mark()
}

func (q Query) mark() string {
	sum := sha256.Sum256([]byte(strings.TrimSpace(q.Text)))
	return base64.RawURLEncoding.EncodeToString(sum[:6])
}
