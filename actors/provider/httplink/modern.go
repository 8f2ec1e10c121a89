package httplink

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
)

// errNoAnswers says that the era without a handshake has no requests of servers, and so no answers to them.
var errNoAnswers = errors.New("this server is sent no answers: its protocol version has no requests of servers")

// standing is a text that stands for a message's body while its head and tail are read as one JSON text. It is made once, and nobody else
// knows it.
var standing = []byte(`"` + rand.Text() + `"`)

// modernize puts what each message of the era without a handshake says of its sender into its params. The body, which is one JSON value,
// is neither read nor copied.
func modernize(m *link.Message, build string) error {
	if m.Method == "" {
		return errNoAnswers
	}
	text := append([]byte{}, m.Head...)
	if m.Body != nil {
		text = append(text, standing...)
	}
	text = append(text, m.Tail...)
	o, err := jsonrpc.ParseObject(text)
	if err != nil {
		return fmt.Errorf("a message of ours: %w", err)
	}
	params, _ := o.Get("params")
	if params, err = mcp.ModernParams(params, build); err != nil {
		return fmt.Errorf("a message of ours: %w", err)
	}
	text = o.Set("params", params)
	m.Head, m.Tail = text, nil
	if m.Body != nil {
		i := bytes.LastIndex(text, standing)
		m.Head, m.Tail = text[:i], text[i+len(standing):]
	}
	return nil
}

// standardHeaders say what a message is without its being read.
func standardHeaders(m link.Message) [][2]string {
	h := [][2]string{{"Mcp-Method", fieldOf(m.Method)}}
	if m.Name != "" {
		h = append(h, [2]string{"Mcp-Name", fieldOf(m.Name)})
	}
	return h
}
