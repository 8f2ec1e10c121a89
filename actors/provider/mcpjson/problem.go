package mcpjson

import (
	"fmt"
	"strings"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// Problem is one thing that is wrong. It says where, and holds no value of a string that may be secret.
type Problem struct {
	File    string
	Line    int    // 1-based; 0 = the file as a whole
	Column  int    // 1-based, in bytes; 0 = the line as a whole
	Server  string // "" = the file as a whole
	Text    string
	Warning bool // what it is about is used all the same
}

// Error makes it one line: where, whose, what.
func (p Problem) Error() string {
	var b strings.Builder
	b.WriteString(shownPath(p.File))
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	if p.Column > 0 {
		fmt.Fprintf(&b, ":%d", p.Column)
	}
	b.WriteString(": ")
	if p.Server != "" {
		b.WriteString(jsonrpc.Show(p.Server) + ": ")
	}
	b.WriteString(p.Text)
	return b.String()
}

// shownPath keeps a path that is plain text and quotes any other.
func shownPath(path string) string {
	for _, r := range path {
		if r < ' ' || r == 0x7f || r == '\uFFFD' {
			return fmt.Sprintf("%q", path)
		}
	}
	return path
}

// FieldError says why an entry cannot be used as things are: a variable that is not set, a value that cannot be sent. It holds no value.
type FieldError struct {
	File     string
	Line     int // of the field
	Server   string
	Field    string // such as "args[2]", "env.TOKEN", "headers.Authorization"
	Variable string // that is not set; "" when it is another fault
	Text     string
}

// Error is without file and line, since agents are shown it too; [FieldError.Problem] has them.
func (e *FieldError) Error() string { return e.Field + " " + e.Text }

// Problem is the error with its place.
func (e *FieldError) Problem() Problem {
	return Problem{File: e.File, Line: e.Line, Server: e.Server, Text: e.Error()}
}
