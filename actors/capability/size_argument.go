package capability

import (
	"slices"
	"strings"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// sizeNames are what arguments are called that bound the size of a result, the plainest first, in lower case and without signs between words.
var sizeNames = []string{"limit", "maxresults", "maxitems", "maxcount", "maxlength", "maxbytes", "maxchars", "maxtokens", "maxlines", "maxdepth",
	"maxsize", "maxwidth", "maxheight", "pagesize", "perpage", "pagelimit", "first", "count", "topk", "top", "head", "tail", "numresults", "size",
	"quality", "scale", "width", "height", "length", "depth", "fullpage"}

// sizeArgument is the argument of a tool by which its result becomes smaller, as its schema names it; "" when there is none.
func sizeArgument(schema []byte) string {
	o, err := jsonrpc.ParseObject(schema)
	if err != nil {
		return ""
	}
	raw, _ := o.Get("properties")
	properties, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return ""
	}
	best, rank := "", len(sizeNames)+1
	seen := 0
	for name, schema := range properties.Members() {
		if seen++; seen > 256 {
			break
		}
		if at := sizeRank(name); at < rank && countable(schema) {
			best, rank = name, at
		}
	}
	if best == "" {
		return ""
	}
	return jsonrpc.Show(best)
}

// sizeRank is how plainly a name speaks of a size: the lower the plainer.
func sizeRank(name string) int {
	plain := strings.ToLower(strings.NewReplacer("_", "", "-", "", ".", "").Replace(name))
	if at := slices.Index(sizeNames, plain); at >= 0 {
		return at
	}
	if strings.HasPrefix(plain, "max") && len(plain) > len("max") {
		return len(sizeNames)
	}
	return len(sizeNames) + 1
}

// countable reports a property that may be a number or a switch.
func countable(schema []byte) bool {
	o, err := jsonrpc.ParseObject(schema)
	if err != nil {
		return true
	}
	kind, ok := o.Get("type")
	if !ok {
		return true
	}
	name, isText := jsonrpc.String(kind)
	return !isText || name == "integer" || name == "number" || name == "boolean"
}
