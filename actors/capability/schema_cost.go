package capability

import (
	"fmt"
	"regexp/syntax"

	"github.com/acpod/acpod/runtime/kernel"
)

// What the check of arguments costs in memory, measured and rounded up: a schema of
// 64 KiB can make the validator hold 25 MiB, and one pattern of a few bytes a
// hundred. Whoever checks pays beforehand, and what no account should pay for is
// not compiled or not decoded.
const (
	bytesPerText      = 3        // of a schema, for each of its own bytes: decoded, compiled, quoted
	bytesPerValue     = 136      // of a schema, for each value in it
	bytesPerSubschema = 1400     // beside its values
	bytesPerInst      = 96       // of a compiled pattern, for each instruction
	bytesPerToken     = 120      // of decoded arguments, for each of { [ : and ,
	bytesPerName      = 160      // of arguments that are read in place, for each member
	bytesInName       = 16       // and for each byte of its name
	bytesPerStep      = 1 << 10  // of a validation
	maxSubschemas     = 2048     // of one schema
	maxInsts          = 10_000   // of all patterns in one schema
	maxTokens         = 64 << 10 // of arguments that are decoded
)

// cost is what holding a compiled schema costs, and what its patterns cost each.
type cost struct {
	bytes    int64
	patterns map[string]int // instructions of each pattern
}

// costOf weighs a decoded schema. why says what makes it too heavy to be compiled.
func costOf(raw []byte, document any) (c cost, why string) {
	c = cost{bytes: 512 + bytesPerText*int64(len(raw)) + bytesPerValue*int64(values(document)), patterns: map[string]int{}}
	subschemas, insts := 0, 0
	pattern := func(text string) {
		n := instructions(text)
		c.patterns[text] = n
		insts += n
	}
	each(document, func(schema map[string]any) {
		subschemas++
		if text, ok := schema["pattern"].(string); ok {
			pattern(text)
		}
		if m, ok := schema["patternProperties"].(map[string]any); ok {
			for text := range m {
				pattern(text)
			}
		}
	})
	c.bytes += bytesPerSubschema*int64(subschemas) + bytesPerInst*int64(insts)
	switch {
	case subschemas > maxSubschemas:
		return c, fmt.Sprintf("the schema has more than %d subschemas", maxSubschemas)
	case insts > maxInsts:
		return c, fmt.Sprintf("the schema's patterns have more than %d steps", maxInsts)
	}
	return c, ""
}

// values counts the values in a decoded document; a document nests at most as deep
// as a schema may.
func values(x any) int {
	n := 1
	switch x := x.(type) {
	case map[string]any:
		for _, v := range x {
			n += values(v)
		}
	case []any:
		for _, v := range x {
			n += values(v)
		}
	}
	return n
}

// instructions is about how many a pattern is compiled to. It is found without
// compiling it: a{1000} is short until then. One that does not parse has none.
func instructions(pattern string) int {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 1
	}
	return unrolled(tree)
}

func unrolled(re *syntax.Regexp) int {
	n := 0
	for _, sub := range re.Sub {
		n += unrolled(sub)
	}
	if re.Op == syntax.OpRepeat {
		return min(n*max(re.Min, re.Max, 1), 1<<30)
	}
	return min(n+1+len(re.Rune)/2, 1<<30)
}

// load is what makes the check of arguments cost memory.
type load struct {
	bytes  int
	tokens int // what makes values, outside of texts
	names  int // of members
	inName int // bytes of them
}

// weigh reads through arguments once. They are well-formed.
func weigh(args []byte) load {
	l := load{bytes: len(args)}
	text := 0 // length of the text that ended last
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case '"':
			from := i
			i = closingQuote(args, i+1)
			text = i - from
		case ':':
			l.tokens++
			l.names++
			l.inName += text
		case '{', '[', ',':
			l.tokens++
		}
	}
	return l
}

// inPlace is what it takes to read them where they lie: the decoder remembers the names of members.
func (l load) inPlace() int64 { return int64(bytesPerName*l.names + bytesInName*l.inName) }

// decoded is what they hold when they are decoded: their texts, of which bytes that are
// no UTF-8 become three, and their values.
func (l load) decoded() int64 { return int64(3*l.bytes + bytesPerToken*l.tokens) }

// pay acquires from an account; without one nothing is paid.
func pay(account *kernel.Account, n int64) (*kernel.Lease, error) {
	if account == nil {
		return nil, nil
	}
	return account.Acquire(n)
}

// Cost is what a listed tool costs beside its bytes: its place in tables, and what a
// search keeps of its words. Whoever lists it pays.
func Cost(name, description string) int {
	const place, words = 512, 20 << 10 // the latter for search.MaxTerms terms
	return place + min(16*(len(name)+len(description)), words)
}
