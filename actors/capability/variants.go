package capability

import (
	"strings"
	"unicode"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

const (
	// fewMembers are compared with each other.
	fewMembers = 24
	// memberBytes is what a member costs while many of them are compared, beside its name.
	memberBytes = 64
)

// variants refuses two members at the top of arguments whose names are one name to a server that reads them without case, as many do: it
// would take the other one. Names that are the same in every letter are the decoder's to refuse, at any depth.
func variants(account *kernel.Account, args []byte) error {
	o, err := jsonrpc.ParseObject(args)
	if err != nil || o.Len() < 2 {
		return nil // the decoder says what is wrong
	}
	if o.Len() <= fewMembers {
		var names []string
		for name := range o.Members() {
			for _, other := range names {
				if name != other && strings.EqualFold(name, other) {
					return variant(other, name)
				}
			}
			names = append(names, name)
		}
		return nil
	}
	room, err := pay(account, int64(memberBytes*o.Len()+2*len(args)))
	if err != nil {
		return err
	}
	defer room.Release()
	seen := make(map[string]string, o.Len())
	for name := range o.Members() {
		folded := fold(name)
		if other, known := seen[folded]; known && other != name {
			return variant(other, name)
		}
		seen[folded] = name
	}
	return nil
}

func variant(a, b string) error {
	return &ArgumentError{"the arguments " + jsonrpc.Show(a) + " and " + jsonrpc.Show(b) + " differ only in case; send one of them"}
}

// fold is one form of all names that [strings.EqualFold] takes for equal.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return least
	}, name)
}
