package session

import (
	"bytes"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// mergedBytes bounds a frame that is put together of several text updates.
const mergedBytes = 64 << 10

// words is where the text of a text update stands in its frame: the inside of the JSON string, without its quotes.
type words struct {
	known    bool // it was looked for
	from, to int  // 0, 0 = the frame is no text update
}

// findWords looks for the text of a session/update: a chunk of a message or a thought whose content is one text. What is
// interpreted must not stand twice, or two readers could see two texts.
func findWords(frame []byte) words {
	none := words{known: true}
	at := 0
	value := frame
	step := func(name string) bool {
		o, err := jsonrpc.ParseObject(value)
		if err != nil || o.Unique(name) != nil {
			return false
		}
		from, to, ok := o.Span(name)
		if !ok {
			return false
		}
		at += from
		value = value[from:to]
		return true
	}
	if len(frame) > mergedBytes || !step("params") || !step("update") {
		return none
	}
	update, err := jsonrpc.ParseObject(value)
	if err != nil || update.Unique("sessionUpdate", "content") != nil {
		return none
	}
	switch kind, _ := update.Text("sessionUpdate"); kind {
	case acp.UpdateAgentMessage, acp.UpdateAgentThought, acp.UpdateUserMessage:
	default:
		return none
	}
	if !step("content") {
		return none
	}
	content, err := jsonrpc.ParseObject(value)
	if err != nil || content.Unique("type", "text") != nil {
		return none
	}
	if kind, _ := content.Text("type"); kind != "text" || !step("text") || value[0] != '"' {
		return none
	}
	return words{known: true, from: at + 1, to: at + len(value) - 1}
}

func (it *item) text() words {
	if !it.words.known {
		it.words = findWords(*it.body.Load())
	}
	return it.words
}

// merge appends the words of next to it, byte for byte, when both are text updates that differ in nothing else: the same
// session and kind, the same message, the same everything around. It tells whether it did; then next is no more. The account
// pays for the room of a frame that grows before it does; one that is full merges nothing.
func (it *item) merge(next *item, account *kernel.Account) bool {
	if it.act != nil || next.act != nil || it.weight != plain || next.weight != plain || it.past != next.past {
		return false
	}
	one, two := it.text(), next.text()
	if one.to == 0 || two.to == 0 {
		return false
	}
	a, b := *it.body.Load(), *next.body.Load()
	tail := b[two.to:]
	if one.from != two.from || !bytes.Equal(a[:one.from], b[:two.from]) || !bytes.Equal(a[one.to:], tail) {
		return false
	}
	said := b[two.from:two.to]
	need := len(a) + len(said)
	if need > mergedBytes {
		return false
	}
	var lease *kernel.Lease
	room := cap(a)
	if need > room {
		room = min(max(need, 2*room), mergedBytes)
		var err error
		if lease, err = account.Acquire(int64(room) + itemBytes); err != nil {
			return false
		}
	}
	credit, ok := it.credit.Join(next.credit)
	if !ok {
		lease.Release()
		return false
	}
	it.credit, next.credit = credit, nil
	if lease != nil {
		it.lease.Release()
		it.lease = lease
		a = append(make([]byte, 0, room), a...)
	}
	a = append(append(a[:one.to], said...), tail...)
	next.lease.Release()
	it.body.Store(&a)
	it.words.to += len(said)
	it.size = int64(len(a))
	it.count += next.count
	it.said += next.said
	return true
}
