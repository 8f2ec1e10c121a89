package httplink

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// endless writes until the connection is closed, and says how much it wrote.
func endless(w io.Writer, piece string) int64 {
	block := []byte(strings.Repeat(piece, 1+(64<<10)/len(piece)))
	total := int64(0)
	for total < 256<<20 {
		n, err := w.Write(block)
		total += int64(n)
		if err != nil {
			break
		}
	}
	return total
}

// TestWhatHasNoEndStaysUnderItsAccount: bodies and lines of 256 MiB fail their request; no more is read than may be kept, and the link lives on.
func TestWhatHasNoEndStaysUnderItsAccount(t *testing.T) {
	t.Parallel()
	const limit, room = 1 << 20, 4 << 20
	for name, script := range map[string]func(w http.ResponseWriter) int64{
		"body": func(w http.ResponseWriter) int64 {
			w.Header().Set("Content-Type", "application/json")
			return endless(w, `{"a":1,`)
		},
		"line of data": func(w http.ResponseWriter) int64 { startEvents(w, "data: "); return endless(w, "x") },
		"lines of data": func(w http.ResponseWriter) int64 {
			startEvents(w, "")
			return endless(w, "data: "+strings.Repeat("x", 1000)+"\n")
		},
		"empty lines of data": func(w http.ResponseWriter) int64 { startEvents(w, ""); return endless(w, "data:\n") },
		"length": func(w http.ResponseWriter) int64 {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", fmt.Sprint(256<<20))
			return endless(w, `{"a":1,`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wrote := make(chan int64, 1)
			s := serve(t, ordinary(func(w http.ResponseWriter, _ *http.Request, g got) {
				if g.rpc.Method != "evil" {
					reply(w, g, `{}`)
					return
				}
				wrote <- script(w)
			}))
			r := run(t, Options{URL: s.url, ResultBytes: limit}, room)
			r.initialize()
			r.request(2, "evil")
			err := r.failure("2")
			if large, ok := errors.AsType[*link.TooLargeError](err); !ok || large.Limit != limit || errors.Is(err, link.ErrUnsent) {
				t.Errorf("the failure is %v", err)
			}
			select {
			case n := <-wrote: // what is beyond the limit is in buffers of the system
				if n > 64<<20 {
					t.Errorf("%d bytes went out before the connection was closed", n)
				}
			case <-time.After(patience):
				t.Error("the server is still writing")
			}
			r.request(3, "fine")
			r.answer("3")
		})
	}
}

func TestFieldsWithoutEndCostNothing(t *testing.T) {
	for name, piece := range map[string]string{"comment": ":", "field name": "n", "id": "id: ", "event": "event: ", "retry": "retry: 1", "unknown": "x: "} {
		account := kernel.NewAccount("provider_bytes", 1)
		text := io.MultiReader(strings.NewReader(piece), io.LimitReader(repeat('y'), 4<<20), strings.NewReader("\n\n"))
		r := newReader(text, account, 1<<20)
		_, err := r.next(t.Context(), -1)
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
		if kept := cap(r.field.b) + cap(r.value.b) + cap(r.name.b) + cap(r.newID.b); kept > 16<<10 {
			t.Errorf("%s: %d bytes are kept", name, kept)
		}
		r.close()
	}
}

type repeat byte

func (c repeat) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(c)
	}
	return len(b), nil
}

func TestAFullAccountRefusesTheAnswerAndNotTheLink(t *testing.T) {
	big := strings.Repeat("x", 600<<10)
	bubble(t, ordinary(func(w http.ResponseWriter, _ *http.Request, g got) {
		switch g.rpc.Method {
		case "events":
			startEvents(w, event(`{"jsonrpc":"2.0","id":`+string(g.rpc.ID.Raw())+`,"result":"`+big+`"}`))
		case "json":
			reply(w, g, `"`+big+`"`)
		default:
			reply(w, g, `1`)
		}
	}), func(t *testing.T, _ *site, o Options) {
		r := run(t, o, 4<<20)
		r.initialize()
		held, err := r.account.Acquire(3 << 20)
		if err != nil {
			t.Fatal(err)
		}
		for i, method := range []string{"events", "json"} {
			id, begun := int64(2+i), time.Now()
			r.request(id, method)
			full, ok := errors.AsType[*kernel.Overloaded](r.failure(fmt.Sprint(id)))
			if waited := time.Since(begun); !ok || full.Scope != "provider_bytes" || waited != roomTimeout {
				t.Errorf("%s: %v after %v", method, full, waited)
			}
		}
		r.request(4, "small")
		r.answer("4")
		r.request(5, "json") // waits for the room, and gets it
		time.Sleep(roomTimeout / 2)
		held.Release()
		r.answer("5")
	})
}

func TestABombStaysPacked(t *testing.T) {
	s := serve(t, ordinary(func(w http.ResponseWriter, _ *http.Request, _ got) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		endless(z, " ")
		z.Close()
	}))
	r := run(t, Options{URL: s.url}, 64<<10)
	r.initialize()
	r.request(2, "x")
	if _, ok := errors.AsType[*NotAnswerError](r.failure("2")); !ok {
		t.Error("a compressed answer is taken")
	}
}

func TestASlowDribbleEndsAtTheDeadline(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"head":   "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1000),
		"body":   "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n" + strings.Repeat(" ", 1000),
		"stream": "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + strings.Repeat(":", 1000),
		"error":  "HTTP/1.1 400 no\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n" + strings.Repeat(" ", 1000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := raw(t, func(c net.Conn, _ *http.Request) {
				for i := range len(text) {
					if _, err := c.Write([]byte{text[i]}); err != nil {
						return
					}
					if i > 60 {
						time.Sleep(10 * time.Millisecond)
					}
				}
			})
			r := run(t, Options{URL: url}, 1<<20)
			r.awaitUp()
			id := jsonrpc.IntID(2)
			r.send(link.Message{ID: id, Method: "slow", Head: jsonrpc.AppendRequest(nil, id, "slow", nil), Deadline: time.Now().Add(400 * time.Millisecond)})
			if err := r.failure("2"); errors.Is(err, link.ErrUnsent) != (name == "error") {
				t.Errorf("the failure is %v", err)
			}
		})
	}
}

// TestACutAtEachByteFailsTheRequestAndProvesNothing: an answer that ends early is not taken, and the request may have been done.
func TestACutAtEachByteFailsTheRequestAndProvesNothing(t *testing.T) {
	t.Parallel()
	body := result("2")
	for name, text := range map[string]string{
		"length":  fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body),
		"chunked": fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body),
		"stream":  "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + event(body),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cuts := make(chan int, 1)
			url := raw(t, func(c net.Conn, _ *http.Request) { _, _ = io.WriteString(c, text[:<-cuts]) })
			r := run(t, Options{URL: url}, 1<<20)
			r.awaitUp()
			for cut := range len(text) + 1 {
				cuts <- cut
				r.request(2, "x")
				got := r.next()
				whole := cut == len(text)
				if got.id != "2" || (got.err == nil) != whole || errors.Is(got.err, link.ErrUnsent) {
					t.Fatalf("cut at %d of %d (%q): %+v", cut, len(text), text[max(0, cut-10):cut], got)
				}
			}
		})
	}
}

func TestAnAnswerThatComesTwiceIsToldOnce(t *testing.T) {
	two := make(chan struct{})
	s := serve(t, ordinary(func(w http.ResponseWriter, _ *http.Request, g got) {
		if g.rpc.Method == "late" {
			<-two
			startEvents(w, event(result("3"))+event(result("2")))
			return
		}
		startEvents(w, event(result("3"))+event(result("3"))+event(result("2"))+event(result("2")))
		close(two)
	}))
	r := run(t, Options{URL: s.url}, 1<<20)
	r.initialize()
	r.request(3, "late")
	await(t, "the first", func() bool { return len(s.called("late")) == 1 })
	r.request(2, "both")
	r.answer("3")
	r.answer("2")
	r.end()
	if len(r.told) != 0 || r.refusals("late_answer") == 0 {
		t.Errorf("told once more: %+v", <-r.told)
	}
}

func TestMoreThanTheQueueHoldsIsRefusedAtOnce(t *testing.T) {
	s := serve(t, ordinary(func(_ http.ResponseWriter, r *http.Request, _ got) { <-r.Context().Done() }))
	r := run(t, Options{URL: s.url}, 64<<20)
	r.initialize()
	await(t, "the end of the handshake", func() bool {
		r.link.mu.Lock()
		defer r.link.mu.Unlock()
		return len(s.called("notifications/initialized")) == 1 && r.link.nRequests == 0 && !r.link.held
	})
	refused := 0
	for i := range int64(maxRequests + maxQueue + 50) {
		lease, _ := r.account.Acquire(10)
		id := jsonrpc.IntID(10 + i)
		err := r.link.Send(link.Message{ID: id, Method: "hang", Head: jsonrpc.AppendRequest(nil, id, "hang", nil), Held: lease})
		if full, ok := errors.AsType[*kernel.Overloaded](err); ok && errors.Is(err, link.ErrUnsent) && full.Limit == maxQueue {
			refused++
		} else if err != nil {
			t.Fatal(err)
		}
		if err != nil && lease.Size() != 0 {
			t.Error("a refusal keeps the lease")
		}
	}
	if refused != 50 {
		t.Errorf("%d were refused", refused)
	}
	id := jsonrpc.IntID(10)
	if err := r.link.Send(link.Message{ID: id, Method: "hang", Head: jsonrpc.AppendRequest(nil, id, "hang", nil)}); !errors.Is(err, link.ErrUnsent) {
		t.Errorf("the id of a request in flight is taken again: %v", err)
	}
}

func TestAHeadWithoutEndIsCut(t *testing.T) {
	url := raw(t, func(c net.Conn, _ *http.Request) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n")
		endless(c, "X-Header: "+strings.Repeat("x", 100)+"\r\n")
	})
	r := run(t, Options{URL: url}, 1<<20)
	r.awaitUp()
	r.request(2, "x")
	if err := r.failure("2"); errors.Is(err, link.ErrUnsent) || !strings.Contains(err.Error(), fmt.Sprint(maxHeaderBytes)) {
		t.Errorf("the failure is %v", err)
	}
}

// TestALargeAnswerIsReadOnceIntoOneBuffer measures the memory that an answer of five megabytes takes on its way: itself, where its length
// was said.
func TestALargeAnswerIsReadOnceIntoOneBuffer(t *testing.T) {
	const size = 5 << 20
	s := serve(t, ordinary(func(w http.ResponseWriter, _ *http.Request, g got) {
		body := jsonrpc.AppendResult(nil, g.rpc.ID, []byte(`"`+strings.Repeat("x", size)+`"`))
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		_, _ = w.Write(body)
	}))
	// The account has room for one copy, and not for two.
	r := run(t, Options{URL: s.url, ResultBytes: size + 1<<10}, size+1<<10+3*exchangeBytes)
	r.initialize()
	r.request(2, "big")
	r.answer("2")
}

// TestALongMessageFailsWhatItAnswers: by its edges, in whatever stream it comes; others are passed by.
func TestALongMessageFailsWhatItAnswers(t *testing.T) {
	const limit = 10 << 10
	long := strings.Repeat("x", limit+limit/2)
	answer := func(id string) string {
		return event(`{"result":{"s":"` + long + `"},"jsonrpc":"2.0","id":` + id + `}`)
	}
	hung := make(chan struct{})
	s := serve(t, ordinary(func(w http.ResponseWriter, r *http.Request, g got) {
		switch g.rpc.Method {
		case "hang":
			startEvents(w, ": wait\n\n")
			close(hung)
			<-r.Context().Done()
		case "own":
			startEvents(w, answer("3"))
			<-r.Context().Done()
		default:
			startEvents(w, event(`{"jsonrpc":"2.0","method":"notifications/message","params":"`+long+`"}`)+
				event(`{"jsonrpc":"2.0","id":"q","method":"roots/list","params":"`+long+`"}`)+answer("2")+event(result("4")))
		}
	}))
	r := run(t, Options{URL: s.url, ResultBytes: limit}, 1<<20)
	r.initialize()
	r.request(2, "hang")
	<-hung
	r.request(3, "own")
	r.failure("3")
	r.request(4, "others")
	if large, ok := errors.AsType[*link.TooLargeError](r.failure("2")); !ok || large.Limit != limit {
		t.Error("the answer in another's stream fails its request otherwise")
	}
	r.answer("4")
	await(t, "the answer to the server's request", func() bool {
		for _, g := range s.requests("POST") {
			if strings.HasPrefix(g.body, `{"jsonrpc":"2.0","id":"q","error":{"code":-32603,`) {
				return true
			}
		}
		return false
	})
	if r.refusals("long_message") != 3 {
		t.Errorf("refused %v", r.refused)
	}
}
