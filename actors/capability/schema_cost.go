package capability

import (
	"bytes"
	"encoding/json/jsontext"
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

// tokens counts what makes values of arguments, outside of texts.
func tokens(raw []byte) int {
	n := 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i = closingQuote(raw, i+1)
		case '{', '[', ':', ',':
			n++
		}
	}
	return n
}

// price is what decoded arguments may hold: their texts, of which bytes that are no
// UTF-8 become three, and their values.
func price(args []byte) int64 { return int64(3*len(args) + bytesPerToken*tokens(args)) }

// sound judges arguments that have too many values to be decoded: one text of JSON
// in which no member stands twice.
func sound(args []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(args), jsontext.AllowInvalidUTF8(true))
	return d.SkipValue()
}

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
