package conform

import (
	"fmt"
	"strings"
	"time"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// Limits at the byte, turns that are cut short, and a connection on which nothing happens.

// asleep is after how long without data a browser's extension worker is put to sleep.
const asleep = 30 * time.Second

// stubborn is how long a row waits for what agent.cancel_timeout and agent.stop_grace bound, which no answer tells: twice what they
// are by default, together.
const stubborn = 40 * time.Second

func lifecycleRows() []Row {
	return []Row{
		{Name: "a frame over frame_bytes closes the connection", Expected: "close 1009, no answer", check: func(a *attempt) {
			size := a.survey.frameBytes + 1
			p := a.greeted()
			p.expect(`"large"`)
			_ = p.write(padded(`{"jsonrpc":"2.0","id":"large","result":"`, `"}`, size)) // it may be cut off
			p.until(func() bool { return p.ended != nil || len(p.answered[`"large"`])+len(p.faults) > 0 })
			if len(p.answered[`"large"`])+len(p.faults) > 0 {
				a.fail(p.latest(), "a frame of %d bytes was answered", size)
			}
			p.closed(1009)
			a.note("close 1009 at %d bytes", size)
		}},
		{Name: "a request over frame_bytes is not answered either", Expected: "close 1009, no answer", check: func(a *attempt) {
			size := a.survey.frameBytes + 1
			p := a.greeted()
			p.expect(`"large"`)
			p.expect("null")
			_ = p.write(padded(`{"jsonrpc":"2.0","id":"large","method":"_wirecheck/ping","params":"`, `"}`, size))
			p.until(func() bool { return p.ended != nil || len(p.answered[`"large"`])+len(p.answered["null"]) > 0 })
			if len(p.answered[`"large"`])+len(p.answered["null"]) > 0 {
				a.fail(p.latest(), "a frame of %d bytes was answered", size)
			}
			p.closed(1009)
			a.note("close 1009 at %d bytes", size)
		}},
		{Name: "a response of exactly frame_bytes passes", Expected: "the connection lives", check: func(a *attempt) {
			p := a.greeted()
			p.raw(padded(`{"jsonrpc":"2.0","id":4711,"result":"`, `"}`, a.survey.frameBytes))
			p.ping()
			a.note("%d bytes", a.survey.frameBytes)
		}},
		{Name: "a response between the two limits passes", Expected: "the connection lives, nothing is answered", check: func(a *attempt) {
			a.twoLimits()
			p := a.greeted()
			p.silent("a response", func() {
				p.raw(padded(`{"jsonrpc":"2.0","id":4711,"result":"`, `"}`, a.survey.requestBytes+1))
			})
			a.note("%d bytes", a.survey.requestBytes+1)
		}},
		{Name: "a request of exactly request_bytes passes", Expected: "it is answered by its method", check: func(a *attempt) {
			p := a.greeted()
			p.bad(padded(`{"jsonrpc":"2.0","id":"exact","method":"_wirecheck/ping","params":"`, `"}`, a.survey.requestBytes), jsonrpc.MethodNotFound, `"exact"`)
			a.note("%d bytes", a.survey.requestBytes)
		}},
		{Name: "a request over request_bytes is refused, and the connection lives", Expected: "-32000 with its id, scope, limit, used and size; then initialize is answered again", check: func(a *attempt) {
			a.twoLimits()
			size := a.survey.requestBytes + 1
			p := a.greeted()
			p.expect(`"over"`)
			p.raw(padded(`{"jsonrpc":"2.0","id":"over","method":"_wirecheck/ping","params":"`, `"}`, size))
			m := p.answer(`"over"`)
			e := p.refused(m, jsonrpc.Overload, fmt.Sprintf("a request of %d bytes", size))
			data, ok := decode[limitData](e.RawData)
			if !ok || data.Scope != "request_bytes" || data.Limit != int64(a.survey.requestBytes) || data.Used == nil || data.Size != int64(size) {
				a.fail(m.show(), "data does not say scope request_bytes, limit %d, used, and size %d", a.survey.requestBytes, size)
			}
			p.hello()
			a.note("-32000, limit %d", data.Limit)
		}},
		{Name: "a notification over request_bytes is dropped", Expected: "silence, and the connection lives", check: func(a *attempt) {
			a.twoLimits()
			p := a.greeted()
			p.silent("a notification", func() {
				p.raw(padded(`{"jsonrpc":"2.0","method":"_wirecheck/ping","params":"`, `"}`, a.survey.requestBytes+1))
			})
			a.note("silence")
		}},
		{Name: "a cancel in the frame after its prompt cancels it", Expected: "stopReason cancelled", needs: needTurns, check: func(a *attempt) {
			p := a.greeted()
			s := p.open()
			id := s.prompt(longLine(a))
			s.cancel()
			p.wantCancelled(p.answer(id))
			a.note("cancelled")
		}},
		{Name: "a cancel in the middle of a turn ends it", Expected: "text, then stopReason cancelled", needs: needDemo, check: func(a *attempt) {
			p := a.greeted()
			s := p.open()
			from := len(p.seen)
			id := s.prompt("begun\n/sleep 10m")
			p.await("the first text of the turn", func() bool { return s.text(from, len(p.seen)) != "" })
			s.cancel()
			p.wantCancelled(p.answer(id))
			s.says("alive", "echo: alive\n")
			a.note("cancelled")
		}},
		{Name: "a second prompt while a turn runs is refused", Expected: "-32001 with data.reason busy, and the turn goes on", needs: needTurns, check: func(a *attempt) {
			p := a.greeted()
			s := p.open()
			first := s.prompt(longLine(a))
			second := s.prompt(greeting)
			if a.survey.agent == agentOther { // which may end its turn before the second comes
				p.until(func() bool { return len(p.answered[second]) > 0 || len(p.answered[first]) > 0 })
				if len(p.answered[second]) == 0 {
					s.cancel()
					a.skip("the agent had ended its turn before the second prompt was there")
				}
			}
			m := p.answer(second)
			if e := p.refused(m, jsonrpc.Busy, "a second prompt"); e.Reason() != "busy" {
				a.fail(m.show(), "data.reason is not busy")
			}
			s.cancel()
			p.answer(first)
			a.note("-32001 busy")
		}},
		{Name: "an agent that does not end its turn is cut off", Expected: "stopReason cancelled within agent.cancel_timeout, and a turn by another agent", needs: needDemo, beside: true, check: func(a *attempt) {
			p := a.greeted()
			s := p.open()
			from := len(p.seen)
			hung := s.prompt("begun\n/hang")
			p.await("the first text of the turn", func() bool { return s.text(from, len(p.seen)) != "" })
			s.cancel()
			begun := time.Now()
			if !p.within(stubborn, func() bool { return len(p.answered[hung]) > 0 }) {
				a.fail(p.how(), "a cancelled turn was not answered for %v", stubborn)
			}
			p.wantCancelled(p.answer(hung))
			took := time.Since(begun).Round(100 * time.Millisecond)
			again := s.prompt("alive")
			p.within(stubborn, func() bool { return len(p.answered[again]) > 0 })
			if m := p.answer(again); stop(m) != "end_turn" {
				a.fail(m.show(), "the next prompt did not find an agent")
			}
			a.note("cancelled after %v, and another agent", took)
		}},
		{Name: "a connection on which nothing happens is kept awake", Expected: "_acpod/keepalive within 30 s, after which browser workers sleep", beside: true, check: func(a *attempt) {
			p := a.greeted()
			begun := time.Now()
			if !p.within(asleep, func() bool { return len(p.received("_acpod/keepalive")) > 0 }) {
				a.fail(p.how(), "no data frame came for %v", asleep)
			}
			a.note("after %v", time.Since(begun).Round(100*time.Millisecond))
		}},
		{Name: "sessions of a connection are counted", Expected: "-32000 with scope sessions_per_connection, its limit and use; the others live", needs: needNone, check: func(a *attempt) {
			const most = 1_000
			p := a.greeted()
			for range most {
				m := p.answer(p.send("session/new", object{"cwd": "/", "mcpServers": []any{}}))
				if m.Error == nil {
					result, _ := decode[sessionResult](m.Result)
					p.sessions = append(p.sessions, &session{p: p, id: result.SessionID, opened: m})
					continue
				}
				data, _ := decode[limitData](p.refused(m, jsonrpc.Overload, "one session too many").RawData)
				if data.Limit == 0 || data.Used == nil || !strings.Contains(data.Scope, "sessions") {
					a.fail(m.show(), "data does not name the scope, its limit and its use")
				}
				if data.Scope == "sessions_per_connection" && int(data.Limit) != len(p.sessions) {
					a.fail(m.show(), "it came with %d sessions open", len(p.sessions))
				}
				p.sessions[0].close()
				p.open()
				a.note("%s %d", shown(data.Scope), data.Limit)
				return
			}
			a.skip("a connection may have more than %d sessions", most)
		}},
	}
}

// twoLimits skips a row where requests may be as large as frames.
func (a *attempt) twoLimits() {
	if a.survey.requestBytes >= a.survey.frameBytes {
		a.skip("requests may be as large as frames")
	}
}

// longLine is a prompt whose turn lasts, where that can be asked for.
func longLine(a *attempt) string {
	if a.survey.agent == agentDemo {
		return "/sleep 10m"
	}
	return greeting
}

func (p *peer) wantCancelled(m message) {
	if stop(m) != "cancelled" {
		p.a.fail(m.show(), "a cancelled turn is answered cancelled, whatever the agent does")
	}
}
