package search

import (
	"strings"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// builder collects the postings of a list, tool by tool.
type builder struct {
	ids      map[string]int32
	postings []numbered
	here     map[int32]int // of the tool that is being read: term to posting
}

type numbered struct {
	posting
	term int32
}

func (b *builder) read(at int32, tool Tool) doc {
	clear(b.here)
	name := clip(tool.Name)
	d := doc{lower: strings.ToLower(name), joined: joined(name)}
	add := func(text string, field int, compounds bool) {
		before := ""
		eachWord(clip(text), func(w string, hyphen bool) bool {
			if compounds && hyphen {
				b.count(stem(before+w), at, field)
			}
			before = w
			if !stop[w] || field == inName {
				if b.count(stem(w), at, field) && d.sizes[field] < 1<<16-1 {
					d.sizes[field]++
				}
			}
			return true
		})
	}
	add(tool.Name, inName, false)
	head, rest := sentence(clip(tool.Description))
	add(head, inHead, true)
	add(rest, inRest, true)
	for param := range params(tool.Schema) {
		add(param, inParam, false)
	}
	return d
}

// count enters a term; false when the tool has too many different ones.
func (b *builder) count(term string, at int32, field int) bool {
	id, known := b.ids[term]
	if known {
		if i, here := b.here[id]; here {
			if c := &b.postings[i].count[field]; *c < 1<<8-1 {
				*c++
			}
			return true
		}
	}
	if len(b.here) == MaxTerms {
		return false
	}
	if !known {
		id = int32(len(b.ids))
		b.ids[strings.Clone(term)] = id
	}
	b.here[id] = len(b.postings)
	p := numbered{posting{doc: at}, id}
	p.count[field] = 1
	b.postings = append(b.postings, p)
	return true
}

// sentence parts a description behind its first sentence, or its first line.
func sentence(s string) (head, rest string) {
	end := len(s)
	if i := strings.IndexByte(s, '\n'); i > 0 {
		end = i
	}
	for i := 0; i+1 < end; i++ {
		if (s[i] == '.' || s[i] == '!' || s[i] == '?' || s[i] == ';') && s[i+1] == ' ' {
			end = i + 1
			break
		}
	}
	return s[:end], s[end:]
}

// params hands out the names of a schema's parameters.
func params(schema []byte) func(func(string) bool) {
	return func(yield func(string) bool) {
		o, err := jsonrpc.ParseObject(schema)
		if err != nil {
			return
		}
		raw, ok := o.Get("properties")
		if !ok {
			return
		}
		props, err := jsonrpc.ParseObject(raw)
		if err != nil {
			return
		}
		n := 0
		for name := range props.Members() {
			if n++; n > maxParams || !yield(name) {
				return
			}
		}
	}
}

// clip cuts a text to what counts of it, between two characters.
func clip(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "")
}
