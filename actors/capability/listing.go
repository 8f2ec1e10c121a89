package capability

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"

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

// search is the page of the catalog that a query asks for, as the JSON text of
// the contract. The cursor is an offset bound to the query's words: a catalog
// that changed between two pages may show an entry twice or not at all, and the
// total says so.
func (v *View) search(q Query) ([]byte, *Refusal) {
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
	list := v.Catalog()
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
	total := len(list)
	list = list[min(from, total):]
	next := ""
	if len(list) > q.Limit {
		list = list[:q.Limit]
		next = q.cursor(from + q.Limit)
	}
	return v.page(list, next, total, q.Names), nil
}

// page writes one page. Schemas are spliced as the server wrote them.
func (v *View) page(list []Capability, next string, total int, namesOnly bool) []byte {
	size := 256
	for _, c := range list {
		size += 128 + len(c.Name) + len(c.Tool.Description) + len(c.Tool.InputSchema)
	}
	b := make([]byte, 0, size)
	b = append(b, `{"capabilities":[`...)
	for i, c := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"name":`...)
		b = jsonrpc.AppendString(b, c.Name)
		if !namesOnly {
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
	for i, u := range v.Unavailable() {
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
	for i, name := range v.Pending() {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsonrpc.AppendString(b, name)
	}
	b = append(b, ']')
	if next != "" {
		b = append(b, `,"next_cursor":`...)
		b = jsonrpc.AppendString(b, next)
	}
	b = append(b, `,"total":`...)
	b = strconv.AppendInt(b, int64(total), 10)
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
