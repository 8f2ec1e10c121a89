package redact

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
)

// Bounds of the operator's patterns.
const (
	MaxPatterns = 64
	MaxPattern  = 512 // bytes of one
	// MinMatch is how many characters each match of a pattern has at least. So no result grows, and none becomes a row of masks.
	MinMatch = 3
	// maxProgram is how many instructions all patterns may compile to together: time is in proportion to it.
	maxProgram = 20_000
)

// Rules take what the operator's patterns match out of results. nil is no rules. Safe from any goroutine.
type Rules struct {
	rules []rule
}

// rule is one pattern, and what a text must contain for it to match.
type rule struct {
	pattern *regexp.Regexp
	need    need
	// lines: it matches within one line, and nothing beyond that line decides whether. So only lines with the need are looked at.
	lines bool
}

// PatternError says which pattern cannot be used, and why.
type PatternError struct {
	Index int // from 0
	Cause error
}

func (e *PatternError) Error() string { return fmt.Sprintf("pattern %d: %v", e.Index+1, e.Cause) }
func (e *PatternError) Unwrap() error { return e.Cause }

// Compile reads the patterns of mcp.redact, in RE2's syntax. nil for none of them; a *PatternError for the first that cannot be used.
func Compile(patterns []string) (*Rules, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	if len(patterns) > MaxPatterns {
		return nil, &PatternError{MaxPatterns, fmt.Errorf("there are %d patterns, and %d are allowed; put some together with |", len(patterns), MaxPatterns)}
	}
	r := &Rules{}
	size := 0
	for i, text := range patterns {
		one, n, err := compile(text)
		if size += n; err == nil && size > maxProgram {
			err = fmt.Errorf("the patterns are too large together; repeat less with {n,m}")
		}
		if err != nil {
			return nil, &PatternError{i, err}
		}
		r.rules = append(r.rules, one)
	}
	return r, nil
}

func compile(text string) (rule, int, error) {
	if len(text) > MaxPattern {
		return rule{}, 0, fmt.Errorf("it has %d bytes, and %d are allowed", len(text), MaxPattern)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return rule{}, 0, err
	}
	pattern, err := regexp.Compile(text)
	if err != nil {
		return rule{}, 0, err
	}
	tree = tree.Simplify()
	program, err := syntax.Compile(tree)
	if err != nil {
		return rule{}, 0, err
	}
	if least := shortestMatch(tree); least < MinMatch {
		return rule{}, 0, fmt.Errorf("it matches %d characters, and %d is the least: it would take out what is no secret", least, MinMatch)
	}
	return rule{pattern, needOf(tree), withinLine(tree)}, len(program.Inst), nil
}

// shortestMatch is how many characters a match has at least. The tree is simplified: it has no repeats by number.
func shortestMatch(t *syntax.Regexp) int {
	switch t.Op {
	case syntax.OpLiteral:
		return len(t.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1
	case syntax.OpCapture, syntax.OpPlus:
		return shortestMatch(t.Sub[0])
	case syntax.OpRepeat:
		return t.Min * shortestMatch(t.Sub[0])
	case syntax.OpConcat:
		sum := 0
		for _, sub := range t.Sub {
			sum = min(sum+shortestMatch(sub), 1<<20)
		}
		return sum
	case syntax.OpAlternate:
		least := shortestMatch(t.Sub[0])
		for _, sub := range t.Sub[1:] {
			least = min(least, shortestMatch(sub))
		}
		return least
	case syntax.OpNoMatch:
		return 1 << 20
	}
	return 0 // what is optional, and what only looks
}

// withinLine reports that no match has a newline in it, and that it does not matter whether a line is the first or the last.
func withinLine(t *syntax.Regexp) bool {
	switch t.Op {
	case syntax.OpAnyChar, syntax.OpBeginText, syntax.OpEndText:
		return false
	case syntax.OpLiteral:
		return !slices.Contains(t.Rune, '\n')
	case syntax.OpCharClass:
		for i := 0; i < len(t.Rune); i += 2 {
			if t.Rune[i] <= '\n' && '\n' <= t.Rune[i+1] {
				return false
			}
		}
	}
	return !slices.ContainsFunc(t.Sub, func(sub *syntax.Regexp) bool { return !withinLine(sub) })
}

// A span is what is taken out of a text.
type span struct{ from, to int }

// spans are what the rules match in a text, in order, none touching another.
func (r *Rules) spans(text []byte) []span {
	var found []span
	for _, rule := range r.rules {
		if !rule.need.in(text) {
			continue
		}
		for from := 0; from < len(text); {
			line := text[from:]
			if rule.lines {
				if i := bytes.IndexByte(line, '\n'); i >= 0 {
					line = line[:i]
				}
				if !rule.need.in(line) {
					from += len(line) + 1
					continue
				}
			}
			for _, at := range rule.pattern.FindAllIndex(line, -1) {
				found = append(found, span{from + at[0], from + at[1]})
			}
			from += len(line) + 1
		}
	}
	if len(found) < 2 {
		return found
	}
	slices.SortFunc(found, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	merged := found[:1]
	for _, s := range found[1:] {
		if last := &merged[len(merged)-1]; s.from <= last.to {
			last.to = max(last.to, s.to)
		} else {
			merged = append(merged, s)
		}
	}
	return merged
}
