package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// Results come as the server wrote them, to the byte, over either transport.
func TestAResultComesAsTheServerWroteIt(t *testing.T) {
	t.Parallel()
	child := newEvil(t, evilScript{Name: "child", Offer: []string{"rich", "image", "big", "rpcerr", "toolerr", "params"}})
	web := newEvilWeb(t, evilScript{Name: "web", Offer: []string{"rich", "image", "big", "rpcerr", "toolerr", "params"}})
	plain := newEvilWeb(t, evilScript{Name: "plain", Plain: true, Offer: []string{"rich", "image", "big", "rpcerr", "toolerr", "params"}})
	_, a := startEvil(t, providersConfig, child, web, plain)
	for _, server := range []string{"child", "web", "plain"} {
		if got := a.ask(server+".rich", `{}`); !strings.Contains(got.raw, richResult) {
			t.Errorf("%s: the rich result came as %s", server, got.raw)
		}
		got := a.ask(server+".rpcerr", `{}`)
		if !got.Result.IsError || !strings.Contains(got.raw, `"acpod.dev/error":{"code":-32042,"message":"custom boom <&>","data":{"k":[12345678901234567890]}}`) {
			t.Errorf("%s: the server's error came as %s", server, got.raw)
		}
		if got := a.ask(server+".toolerr", `{"text":"why"}`); !got.Result.IsError || got.Result.text() != "no: why" || got.Result.refusal() != "" {
			t.Errorf("%s: the tool's error came as %s", server, got.raw)
		}
		const size = 700 << 10
		picture := a.ask(server+".image", fmt.Sprintf(`{"bytes":%d}`, size))
		if len(picture.Result.Content) != 1 || picture.Result.Content[0].Type != "image" || picture.Result.Content[0].MimeType != "image/png" {
			t.Errorf("%s: the image came as %.200s", server, picture.raw)
		} else if data, err := base64.StdEncoding.DecodeString(picture.Result.Content[0].Data); err != nil || !bytes.HasPrefix(data, []byte(pngHead)) || len(data) != size+len(pngHead) {
			t.Errorf("%s: the image has %d bytes, %v", server, len(data), err)
		}
		if strings.Contains(picture.raw, "structuredContent") {
			t.Errorf("%s: structured content was added", server)
		}
		big := a.ask(server+".big", fmt.Sprintf(`{"bytes":%d}`, 5<<20))
		if n := len(big.Result.text()); n != 5<<20 || len(big.raw) > 5<<20+1<<10 {
			t.Errorf("%s: 5 MiB of text came as %d bytes, %d in all", server, n, len(big.raw))
		}
		arguments := `{"int":12345678901234567890, "one":1.0,"exp":1e2 , "tags":"<>&\u003c\/","é":"\u00e9😀","nested":{"b":1,"a":[ ]}}`
		if got := a.ask(server+".params", arguments); !strings.Contains(got.Result.text(), arguments) {
			t.Errorf("%s: the arguments came as %s", server, got.Result.text())
		}
	}
}

// A message over limits.result_bytes fails its own call, with its size and the limit; the stream goes on behind it.
func TestAResultOverTheLimitFailsItsCallAlone(t *testing.T) {
	t.Parallel()
	child := newEvil(t, evilScript{Name: "child", Offer: []string{"longline", "slow", "whoami", "read_image"}})
	web := newEvilWeb(t, evilScript{Name: "web", Offer: []string{"longline", "slow", "whoami", "read_image"}})
	plain := newEvilWeb(t, evilScript{Name: "plain", Plain: true, Offer: []string{"longline", "slow", "whoami", "read_image"}})
	p, a := startEvil(t, with(providersConfig, "limits.result_bytes", `"1MiB"`), child, web, plain)
	for _, s := range []*evilServer{child, web, plain} {
		name := s.script.Name
		a.ask(name+".whoami", `{}`)
		neighbour := a.later(name+".slow", `{"ms":300,"text":"all the same"}`)
		until(t, "the neighbour at the server", func() bool { return s.calls("slow") == 1 })
		for _, size := range []int{1<<20 + 1, 17 << 20} {
			start := time.Now()
			got := a.ask(name+".longline", fmt.Sprintf(`{"bytes":%d}`, size))
			if !got.Result.IsError || !strings.Contains(got.raw, "limits.result_bytes") && !strings.Contains(got.raw, "result_bytes") {
				t.Errorf("%s: a result of %d bytes: %.300s", name, size, got.raw)
			}
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("%s: a result of %d bytes failed only after %v", name, size, took)
			}
		}
		if got := a.ask(name+".read_image", `{"bytes":1048576}`); !got.Result.IsError || strings.Contains(got.raw, "cHBwcHBw") {
			t.Errorf("%s: an image over the limit: %.300s", name, got.raw)
		}
		if got := a.ask(name+".read_image", `{"bytes":524288}`); got.Result.IsError || len(got.Result.Content) != 1 || got.Result.Content[0].Type != "image" {
			t.Errorf("%s: an image below the limit: %.300s", name, got.raw)
		}
		if result := neighbour.wait(); result.text() != "done all the same" {
			t.Errorf("%s: the neighbour: %.300s", name, result.raw)
		}
	}
	if child.starts() != 1 {
		t.Errorf("the child was started %d times", child.starts())
	}
	p.rested("child", "web", "plain")
}

// rested waits until these providers hold no bytes of calls any more.
func (p *pod) rested(names ...string) {
	p.t.Helper()
	for _, name := range names {
		p.await("the bytes of "+name+" are given back", func() bool { return p.provider(name).Account.Used < 256<<10 }) // its list is all that it may hold
	}
}

// A search's answer is whole JSON however much there is to say, and says how much is left.
func TestASearchOverItsBudgetIsWholeJSON(t *testing.T) {
	t.Parallel()
	var raw []json.RawMessage
	for i := range 120 {
		raw = append(raw, json.RawMessage(fmt.Sprintf(`{"name":"wordy_%d","description":"wordy %s","inputSchema":{"type":"object","properties":{"a":{"type":"string","description":"%s"}}}}`,
			i, strings.Repeat("word ", 800), strings.Repeat("é", 2000))))
	}
	s := newEvil(t, evilScript{Name: "wordy", Raw: raw})
	_, a := startEvil(t, providersConfig, s)
	names := map[string]bool{}
	cursor, pages := "", 0
	for pages == 0 || cursor != "" {
		arguments := `{"limit":100}`
		if cursor != "" {
			arguments = fmt.Sprintf(`{"limit":100,"cursor":%q}`, cursor)
		}
		result := a.tool("search_capabilities", arguments)
		if n := len(result.text()); n > 512<<10 {
			t.Errorf("a page of %d bytes", n)
		}
		var page searchAnswer
		if err := json.Unmarshal([]byte(result.text()), &page); err != nil {
			t.Fatalf("a page that is no JSON: %v", err)
		}
		if page.Total != 121 {
			t.Errorf("the total is %d", page.Total)
		}
		for _, one := range page.Capabilities {
			if names[one.Name] {
				t.Errorf("%s stands on two pages", one.Name)
			}
			names[one.Name] = true
		}
		cursor = page.NextCursor
		if pages++; pages > 200 {
			t.Fatal("the pages have no end")
		}
	}
	if len(names) != 121 {
		t.Errorf("%d of 121 were shown on %d pages", len(names), pages)
	}
}
