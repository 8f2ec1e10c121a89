package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
)

// What a call of each tool does. A tool whose name starts with "read_" does the same as the one without.

// evilArguments are those that the tools take.
type evilArguments struct {
	N      int
	MS     int64
	Bytes  int
	Text   string
	Method string
	List   string
	Params json.RawMessage
}

// richResult has everything that a result can have, written in ways that no encoder would choose.
const richResult = `{ "content" : [ {"type":"text","text":"<a&b> \u00e9 \/ 😀"}, {"type":"image","data":"aGk=","mimeType":"image/png","annotations":{"priority":1.0}},` +
	`{"type":"audio","data":"UklGRg==","mimeType":"audio/wav"}, {"type":"resource_link","uri":"file:///x","name":"x"}, {"type":"resource","resource":{"uri":"file:///y","text":"yy"}} ],` +
	` "structuredContent" : {"big":12345678901234567890,"one":1.0,"tags":"<>&","twice":[1e2,-0]}, "_meta":{"vendor/x":{"k":9007199254740993}}, "unheard":"of" }`

// pngHead makes what follows it a picture to whoever looks at the first bytes.
const pngHead = "\x89PNG\r\n\x1a\n"

func (e *evil) call(f frame, name string, raw, token json.RawMessage, out say) {
	var a evilArguments
	_ = json.Unmarshal(raw, &a)
	id := string(f.ID)
	cancelled := make(chan struct{})
	e.mu.Lock()
	e.open[id] = cancelled
	e.mu.Unlock()
	defer func() { e.mu.Lock(); delete(e.open, id); e.mu.Unlock() }()
	text := func(text string) { out(answerOf(f, textOf(text))) }

	switch strings.TrimPrefix(name, "read_") {
	case "params":
		text(string(f.Params))
	case "whoami":
		text(fmt.Sprintf("%s %d", e.script.Name, os.Getpid()))
	case "remember":
		e.mu.Lock()
		e.state = a.Text
		e.mu.Unlock()
		text("kept")
	case "recall":
		e.mu.Lock()
		kept := e.state
		e.mu.Unlock()
		text(kept)

	case "hang":
		select {
		case <-cancelled:
			e.script.write("stopped", name)
		case <-time.After(10 * patience):
		}
	case "slow":
		select {
		case <-cancelled:
			e.script.write("stopped", name)
		case <-time.After(time.Duration(a.MS) * time.Millisecond):
			e.script.write("done", name+" "+string(raw))
			text("done " + a.Text)
		}
	case "late": // answers only what nobody waits for any more
		<-cancelled
		text("late")
		e.script.write("late", name)
	case "twice":
		text("first")
		text("second")
	case "wrong":
		out(`{"jsonrpc":"2.0","id":987654,"result":{"content":[{"type":"text","text":"not yours"}]}}`)
		out(`{"jsonrpc":"2.0","id":"987654","result":{}}`)
		out(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}`)
		text("right")

	case "progress":
		for i := 1; i <= a.N; i++ {
			if token != nil {
				out(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":%d,"message":"step %d"}}`, token, i, a.N, i))
			}
			time.Sleep(time.Duration(a.MS) * time.Millisecond)
		}
		text(fmt.Sprintf("token %t", token != nil))
	case "log":
		for i := range a.N {
			out(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"evil","data":"%s %d"}}`, a.Text, i))
		}
		text("logged")
	case "ask":
		start := time.Now()
		answer := e.ask(a.Method, a.Params, out)
		text(fmt.Sprintf("%s|%d", answer, time.Since(start).Milliseconds()))

	case "rich":
		out(answerOf(f, `"result":`+richResult))
	case "image":
		out(answerOf(f, `"result":{"content":[{"type":"image","data":"`+base64.StdEncoding.EncodeToString([]byte(pngHead+strings.Repeat("p", a.Bytes)))+`","mimeType":"image/png"}]}`))
	case "big":
		text(strings.Repeat("0123456789abcdef", a.Bytes/16))
	case "toolerr":
		out(answerOf(f, `"result":{"isError":true,"content":[{"type":"text","text":"no: `+a.Text+`"}]}`))
	case "rpcerr":
		out(answerOf(f, `"error":{"code":-32042,"message":"custom boom <&>","data":{"k":[12345678901234567890]}}`))

	case "storm":
		for range a.N {
			out(listChanged(a.List))
		}
		text("stormed")
	case "change":
		e.mu.Lock()
		e.changed = true
		e.mu.Unlock()
		out(listChanged("tools"))
		text("changed")
	default:
		if !e.process(f, name, a, out) {
			text(name + " " + string(raw))
		}
	}
}

// process is what only a child can do: those tools write to its stdout and stderr beside the protocol, or end it. false = it is none of them.
func (e *evil) process(f frame, name string, a evilArguments, out say) bool {
	switch strings.TrimPrefix(name, "read_") {
	case "exit":
		fmt.Fprintln(os.Stderr, a.Text)
		os.Exit(a.N)
	case "kill":
		fmt.Fprintln(os.Stderr, a.Text)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "junk":
		out(junk)
		out(answerOf(f, textOf("clean")))
	case "notutf8":
		out(answerOf(f, `"result":{"content":[{"type":"text","text":"caf`+"\xe9\xff"+` \ud800 end"}]}`))
	case "longline":
		out(answerOf(f, textOf(strings.Repeat("x", a.Bytes))))
	case "endless": // a line that never ends, as much of it as asked
		e.script.write("endless", "")
		chunk := strings.Repeat("y", 1<<20)
		for range a.Bytes >> 20 {
			if _, err := io.WriteString(os.Stdout, chunk); err != nil {
				return true
			}
		}
		e.script.write("wrote", fmt.Sprint(a.Bytes>>20))
	case "deaf":
		out(answerOf(f, textOf("deaf now")))
		close(e.deaf)
	case "stderr":
		for range a.N {
			fmt.Fprintln(os.Stderr, a.Text)
		}
		out(answerOf(f, textOf("written")))
	default:
		return false
	}
	return true
}

// junk is what libraries print on stdout.
const junk = "Server listening on stdio...\n\n   \n\x1b[32m[INFO]\x1b[0m handling request\n{\"not\":\"jsonrpc\"}\n[1]\nnull\n\"text\"\n{\"jsonrpc\":\"2.0\"}\n{\"jsonrpc\":\"2.0\",\"id\":\"nobody\",\"result\":{}}\n{broken\n\x00\x01\r"
