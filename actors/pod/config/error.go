package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Error is one problem of the configuration. It prints as one line: where, which key, what is wrong, what is allowed.
type Error struct {
	At      Origin // file and line, variable or flag; zero when the problem is between keys of several layers
	Key     string // full path, such as mcp.acp_servers[1].name
	Problem string // what was found; never the value of a secret
	Allowed string // what may stand there; empty when Problem says it
	More    int    // how many further problems were found beside this one, which is the first in the file
}

func (e *Error) Error() string {
	var b strings.Builder
	if at := e.At.where(); at != "" {
		b.WriteString(at + ": ")
	}
	if e.Key != "" {
		b.WriteString(printable(e.Key) + ": ")
	}
	b.WriteString(e.Problem)
	if e.Allowed != "" {
		b.WriteString("; allowed: " + e.Allowed)
	}
	if e.More > 0 {
		fmt.Fprintf(&b, " (and %d more)", e.More)
	}
	return b.String()
}

// Origin says which layer set a key.
type Origin struct {
	Layer Layer
	Name  string // file path, variable or flag
	Line  int    // only of a file
}

// Layer is one of the sources of the configuration, in the order in which they are read; a later one wins.
type Layer uint8

// The layers.
const (
	FromDefault Layer = iota
	FromFile
	FromEnv
	FromFlag
)

// String is what `config show` prints behind a key.
func (o Origin) String() string {
	if at := o.where(); at != "" {
		return at
	}
	return "default"
}

func (o Origin) where() string {
	switch o.Layer {
	case FromFile:
		if o.Line > 0 {
			return fmt.Sprintf("%s:%d", printable(o.Name), o.Line)
		}
		return printable(o.Name)
	case FromEnv:
		return "env " + printable(o.Name)
	case FromFlag:
		return "flag " + printable(o.Name)
	default:
		return ""
	}
}

// printable keeps a name that is one line of plain text and quotes any other, so that an error stays one line.
func printable(s string) string {
	if len(s) <= 256 && !strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) || r == '\uFFFD' }) {
		return s
	}
	return quote(s)
}
