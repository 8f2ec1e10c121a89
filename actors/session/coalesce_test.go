package session

import (
	"bytes"
	"encoding/json/v2"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/actors/tunnel"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

const testID = "sess_00000000-0000-4000-8000-000000000000"

// updateFrame is the frame of one update; update is its member.
func updateFrame(update string) []byte {
	return jsonrpc.AppendNotification(nil, acp.MethodSessionUpdate, []byte(`{"sessionId":"`+testID+`","update":`+update+`}`))
}

func chunk(kind, rest, text string) string {
	return fmt.Sprintf(`{"sessionUpdate":%q,"content":{"type":"text","text":"%s"}%s}`, kind, text, rest)
}

func TestWhichUpdatesBecomeOne(t *testing.T) {
	message := func(text string) string { return chunk(acp.UpdateAgentMessage, "", text) }
	for _, test := range []struct{ name, one, two, both string }{
		{"a message goes on", message("a"), message("b"), message("ab")},
		{"so does a thought", chunk(acp.UpdateAgentThought, "", "a"), chunk(acp.UpdateAgentThought, "", "b"), chunk(acp.UpdateAgentThought, "", "ab")},
		{"and what the user said", chunk(acp.UpdateUserMessage, "", "a"), chunk(acp.UpdateUserMessage, "", "b"), chunk(acp.UpdateUserMessage, "", "ab")},
		{"escapes stay as they are", message(`\u00e4\"`), message(`\\\n`), message(`\u00e4\"\\\n`)},
		{"two halves of a pair meet", message(`\ud83d`), message(`\ude00`), message(`\ud83d\ude00`)},
		{"nothing is something", message(""), message("b"), message("b")},
		{"the same message", chunk(acp.UpdateAgentMessage, `,"messageId":"m"`, "a"), chunk(acp.UpdateAgentMessage, `,"messageId":"m"`, "b"), chunk(acp.UpdateAgentMessage, `,"messageId":"m"`, "ab")},
		{"members in another order, spaces and all", `{ "content" : { "text" : "a" , "type" : "text" } , "sessionUpdate" : "agent_message_chunk" }`, `{ "content" : { "text" : "b" , "type" : "text" } , "sessionUpdate" : "agent_message_chunk" }`, `{ "content" : { "text" : "ab" , "type" : "text" } , "sessionUpdate" : "agent_message_chunk" }`},

		{"another message", chunk(acp.UpdateAgentMessage, `,"messageId":"m"`, "a"), chunk(acp.UpdateAgentMessage, `,"messageId":"n"`, "b"), ""},
		{"another kind", message("a"), chunk(acp.UpdateAgentThought, "", "b"), ""},
		{"other metadata", chunk(acp.UpdateAgentMessage, `,"_meta":{"n":1}`, "a"), chunk(acp.UpdateAgentMessage, `,"_meta":{"n":2}`, "b"), ""},
		{"metadata that one lacks", message("a"), chunk(acp.UpdateAgentMessage, `,"_meta":{}`, "b"), ""},
		{"annotations of the content", message("a"), `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"b","annotations":{"priority":1}}}`, ""},
		{"other spelling", message("a"), `{"sessionUpdate":"agent_message_chunk","content":{"text":"b","type":"text"}}`, ""},
		{"no text", `{"sessionUpdate":"agent_message_chunk","content":{"type":"image","data":"QQ==","mimeType":"image/png"}}`, `{"sessionUpdate":"agent_message_chunk","content":{"type":"image","data":"QQ==","mimeType":"image/png"}}`, ""},
		{"a text that is no string", `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":12}}`, `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":12}}`, ""},
		{"a tool call", chunk(acp.UpdateToolCall, "", "a"), chunk(acp.UpdateToolCall, "", "b"), ""},
		{"a plan", chunk(acp.UpdatePlan, "", "a"), chunk(acp.UpdatePlan, "", "b"), ""},
		{"a text that stands twice", `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x","text":"a"}}`, `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x","text":"b"}}`, ""},
		{"a type that stands twice", `{"sessionUpdate":"agent_message_chunk","content":{"type":"image","type":"text","text":"a"}}`, `{"sessionUpdate":"agent_message_chunk","content":{"type":"image","type":"text","text":"b"}}`, ""},
		{"a content that stands twice", `{"content":{},"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a"}}`, `{"content":{},"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"b"}}`, ""},
		{"too much for one frame", message(strings.Repeat("a", mergedBytes/2)), message(strings.Repeat("b", mergedBytes/2)), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			account := kernel.NewAccount("test", 1<<20)
			item := func(update string) *item {
				frame := updateFrame(update)
				lease, err := account.Acquire(int64(cap(frame)))
				if err != nil {
					t.Fatal(err)
				}
				return newUpdate(frame, lease, nil, plain)
			}
			one, two := item(test.one), item(test.two)
			before := bytes.Clone(*one.body.Load())
			merged := one.merge(two, account)
			if merged != (test.both != "") {
				t.Fatalf("merged: %v", merged)
			}
			got := *one.body.Load()
			switch {
			case merged && string(got) != string(updateFrame(test.both)):
				t.Errorf("got  %s\nwant %s", got, updateFrame(test.both))
			case merged && (one.count != 2 || one.size != int64(len(got)) || account.Used() != one.lease.Size() || one.lease.Size() < int64(cap(got))):
				t.Errorf("it stands for %d updates, %d bytes, and pays for %d of %d", one.count, one.size, account.Used(), cap(got))
			case !merged && !bytes.Equal(got, before):
				t.Errorf("it was not merged and changed: %s", got)
			}
		})
	}
}

func TestAFullAccountMergesNothing(t *testing.T) {
	account := kernel.NewAccount("test", 1000)
	lease, _ := account.Acquire(900)
	one := newUpdate(updateFrame(chunk(acp.UpdateAgentMessage, "", "a")), lease, nil, plain)
	two := newUpdate(updateFrame(chunk(acp.UpdateAgentMessage, "", strings.Repeat("b", 500))), nil, nil, plain)
	if one.merge(two, account) || one.lease != lease || two.count != 1 {
		t.Error("a frame grew that nobody paid for")
	}
}

// narrow is a client that takes what it has room for and writes it when the test says so.
type narrow struct {
	Client
	room    int
	queue   []*sent
	written []string
}

func (n *narrow) Offer(_ string, frame []byte, lease *kernel.Lease, done func(bool)) error {
	if len(n.queue) >= n.room {
		return &kernel.Overloaded{Scope: "outbound_frames"}
	}
	n.queue = append(n.queue, &sent{string(frame), lease, done})
	return nil
}

func (n *narrow) write() {
	s := n.queue[0]
	n.queue = n.queue[1:]
	n.written = append(n.written, s.frame)
	s.lease.Release()
	s.done(true)
}

// told is what a client makes of frames: the words of each kind between two things that are no words, and those things.
func told(t testing.TB, frames []string) (said []string, frameCount int) {
	for _, frame := range frames {
		var m struct {
			Params struct {
				Update struct {
					Kind    string         `json:"sessionUpdate"`
					Message string         `json:"messageId"`
					Content map[string]any `json:"content"`
				} `json:"update"`
			} `json:"params"`
		}
		if err := json.Unmarshal([]byte(frame), &m); err != nil {
			said = append(said, frame) // an answer, in the test's own words
			continue
		}
		u := m.Params.Update
		text, isText := u.Content["text"].(string)
		head := u.Kind + " " + u.Message + ": "
		switch {
		case !isText:
			said = append(said, frame)
		case len(said) > 0 && strings.HasPrefix(said[len(said)-1], head):
			said[len(said)-1] += text
		default:
			said = append(said, head+text)
		}
	}
	return said, len(frames)
}

// spoken is one run: what is said, in which order room comes and goes, all from the bytes of script.
func spoken(t testing.TB, script []byte) {
	account := kernel.NewAccount("test", 8<<20)
	credits := agent.NewCredits()
	n := &narrow{room: 3}
	o := outbox{session: testID, account: account, spare: 1 << 20, wake: func() {}, refused: func(string) {}, client: n}
	var want []string
	say := func(update string, w weight) {
		frame := updateFrame(update)
		want = append(want, string(frame))
		lease, err := account.Acquire(int64(cap(frame)) + itemBytes)
		if err != nil {
			t.Fatal(err)
		}
		credit, err := credits.Take(canceled(), 10)
		if err != nil {
			t.Fatal(err)
		}
		o.push(newUpdate(frame, lease, credit, w))
	}
	words := []string{"", "a", `\n`, "ü", `\ud83d\ude00`, strings.Repeat("long ", 3000)}
	for i, b := range script {
		lines, _ := credits.Taken()
		arg := int(b >> 3)
		switch {
		case b&7 < 4 && lines >= agent.CreditLines-1: // the agent waits
			for len(n.queue) > 0 {
				n.write()
			}
			o.flush()
		case b&7 < 2:
			say(chunk(acp.UpdateAgentMessage, "", words[arg%len(words)]), plain)
		case b&7 == 2:
			say(chunk(acp.UpdateAgentThought, fmt.Sprintf(`,"messageId":"%d"`, arg%2), words[arg%len(words)]), plain)
		case b&7 == 3:
			say(fmt.Sprintf(`{"sessionUpdate":"tool_call_update","toolCallId":"%d","status":"completed"}`, i), terminal)
		case b&7 == 4:
			answer := fmt.Sprint("answer ", i)
			want = append(want, answer)
			o.push(&item{weight: pinned, answer: true, act: func() error {
				if len(n.queue) >= n.room { // as a request of the agent: it waits as well
					return &kernel.Overloaded{Scope: "outbound_frames"}
				}
				n.queue = append(n.queue, &sent{answer, nil, func(bool) {}})
				return nil
			}})
		case b&7 == 5 && len(n.queue) > 0:
			n.write()
		case b&7 == 6:
			o.flush()
		case b&7 == 7:
			n.room = 1 + arg%5
		}
	}
	for o.flush(); len(n.queue) > 0; o.flush() {
		n.write()
	}
	wanted, frames := told(t, want)
	got, fewer := told(t, n.written)
	if !slices.Equal(got, wanted) {
		t.Fatalf("the client got\n%.2000q\nof\n%.2000q", got, wanted)
	}
	if o.missed != 0 || len(o.queue) != 0 || int64(frames-fewer) != o.merged {
		t.Fatalf("%d missed, %d left, %d merged of %d that are missing", o.missed, len(o.queue), o.merged, frames-fewer)
	}
	if lines, bytes := credits.Taken(); lines != 0 || bytes != 0 || account.Used() != 0 || o.bytes != 0 || o.weighs != [weights]int{} {
		t.Fatalf("at rest %d lines, %d bytes are out, %d paid for, %d queued %v", lines, bytes, account.Used(), o.bytes, o.weighs)
	}
}

// Whatever an agent says and however room comes and goes: every word arrives once, in its place.
func TestASlowClientGetsEveryWordInItsPlace(t *testing.T) {
	for seed := range uint64(80) {
		rng := rand.New(rand.NewPCG(seed, 1))
		script := make([]byte, 400)
		for i := range script {
			script[i] = byte(rng.Uint32())
		}
		spoken(t, script)
	}
}

func FuzzASlowClientGetsEveryWordInItsPlace(f *testing.F) {
	f.Add([]byte("\x07\x00\x00\x00\x00\x03\x00\x00\x04\x00\x05\x05\x06"))
	f.Add(bytes.Repeat([]byte{0, 2, 10, 3, 0}, 100))
	f.Fuzz(func(t *testing.T, script []byte) { spoken(t, script[:min(len(script), 2000)]) })
}

// A frame that was put together is what two readers of JSON would read one after the other.
func FuzzMergedTextIsBothTexts(f *testing.F) {
	f.Add(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a"}}`, `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\u00e4"}}`)
	f.Add(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\"","text ":"a"}}`, `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\\","text ":"a"}}`)
	f.Fuzz(func(t *testing.T, one, two string) {
		if _, err := jsonrpc.ParseObject([]byte(one)); err != nil {
			return
		}
		if _, err := jsonrpc.ParseObject([]byte(two)); err != nil {
			return
		}
		account := kernel.NewAccount("test", 1<<20)
		a, b := newUpdate(updateFrame(one), nil, nil, plain), newUpdate(updateFrame(two), nil, nil, plain)
		if !a.merge(b, account) {
			return
		}
		both := *a.body.Load()
		if _, err := jsonrpc.ParseObject(both); err != nil {
			t.Fatalf("no JSON: %s", both)
		}
		at, x, y := findWords(both), findWords(updateFrame(one)), findWords(updateFrame(two))
		want := string(updateFrame(one)[x.from:x.to]) + string(updateFrame(two)[y.from:y.to])
		if string(both[at.from:at.to]) != want {
			t.Fatalf("%s is not both of %s and %s", both, one, two)
		}
	})
}

var _ tunnel.Carrier = (*narrow)(nil)
