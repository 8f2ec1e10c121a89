package mcpjson

import (
	"bytes"
	"encoding/json/jsontext"
	"errors"
	"io"
)

// maxDepth is how deep a file may be nested. One that says something has four levels.
const maxDepth = 64

// node is one JSON value and where it begins. What it holds was decoded once, strictly: UTF-8, no lone surrogates.
type node struct {
	offset  int
	kind    jsontext.Kind // 'n', 'f', 't', '"', '0', '{', '['
	text    string        // of a string, or the digits of a number
	members []member
	items   []node
}

// member is one member of an object. Names may be repeated; whoever interprets the object refuses that where it matters.
type member struct {
	name   string
	offset int
	value  node
}

// syntaxError is where a text stops being JSON.
type syntaxError struct {
	offset int
	text   string
}

func (e *syntaxError) Error() string { return e.text }

// parseText makes nodes of JSON with comments.
func parseText(text []byte) (node, *syntaxError) {
	plain, open := plainJSON(text)
	if open >= 0 {
		return node{}, &syntaxError{open, "a comment begins here that never ends"}
	}
	if len(bytes.TrimLeft(plain, " \t\r\n")) == 0 {
		return node{}, &syntaxError{0, `the file is empty; write {"mcpServers": {}} for none`}
	}
	d := jsontext.NewDecoder(bytes.NewReader(plain), jsontext.AllowDuplicateNames(true))
	p := parser{plain: plain, d: d}
	n, err := p.value(0)
	if err != nil {
		return node{}, p.syntax(err)
	}
	if at := p.next(); at < len(plain) {
		return node{}, &syntaxError{at, "something stands behind the end of the object"}
	}
	return n, nil
}

type parser struct {
	plain []byte
	d     *jsontext.Decoder
}

// next is where the next token begins.
func (p *parser) next() int {
	at := int(p.d.InputOffset())
	for at < len(p.plain) && bytes.IndexByte([]byte(" \t\r\n,:"), p.plain[at]) >= 0 {
		at++
	}
	return at
}

// syntax says where and, without a byte of the text, what.
func (p *parser) syntax(err error) *syntaxError {
	var ours *syntaxError
	if errors.As(err, &ours) {
		return ours
	}
	at := p.next()
	var theirs *jsontext.SyntacticError
	if errors.As(err, &theirs) {
		at = min(int(theirs.ByteOffset), len(p.plain))
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &syntaxError{len(p.plain), "the file ends too early: a bracket, brace or quote is not closed"}
	}
	return &syntaxError{at, "this is not JSON: look for a missing comma, colon or quote, or a backslash that should be doubled"}
}

func (p *parser) value(depth int) (node, error) {
	n := node{offset: p.next()}
	if depth > maxDepth {
		return n, &syntaxError{n.offset, "this is nested too deeply"}
	}
	token, err := p.d.ReadToken()
	if err != nil {
		return n, err
	}
	n.kind = token.Kind()
	switch n.kind {
	case '"', '0':
		n.text = token.String()
	case '{':
		err = p.object(&n, depth)
	case '[':
		err = p.array(&n, depth)
	}
	return n, err
}

func (p *parser) object(n *node, depth int) error {
	for p.d.PeekKind() != '}' {
		m := member{offset: p.next()}
		name, err := p.d.ReadToken()
		if err != nil {
			return err
		}
		m.name = name.String()
		if m.value, err = p.value(depth + 1); err != nil {
			return err
		}
		n.members = append(n.members, m)
	}
	_, err := p.d.ReadToken()
	return err
}

func (p *parser) array(n *node, depth int) error {
	for p.d.PeekKind() != ']' {
		item, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
	}
	_, err := p.d.ReadToken()
	return err
}

// what names a node's kind for a message.
func (n node) what() string {
	switch n.kind {
	case 'n':
		return "null"
	case 't', 'f':
		return "true or false"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{':
		return "an object"
	default:
		return "a list"
	}
}

// place turns an offset into line and column, both from 1. A carriage return counts as a line end only without a line feed behind it.
func place(text []byte, offset int) (line, column int) {
	line, start := 1, 0
	for i, c := range text[:min(offset, len(text))] {
		if c == '\n' || c == '\r' && (i+1 >= len(text) || text[i+1] != '\n') {
			line, start = line+1, i+1
		}
	}
	return line, offset - start + 1
}
