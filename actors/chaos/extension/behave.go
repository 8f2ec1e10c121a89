package extension

import (
	"math/rand/v2"
	"time"

	"github.com/acpod/acpod/actors/chaos/fault"
	"github.com/acpod/acpod/actors/chaos/server"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// behaviour says how the server of a session answers; serving is the number of that server among all of the run.
func (e *Extension) behaviour(serving int) server.Behaviour {
	steps := map[string]int{}
	return server.Behaviour{
		Step: func(method string) server.Deed {
			if e.isCalm() {
				return server.Deed{}
			}
			e.mu.Lock()
			steps[method]++
			n := steps[method]
			e.mu.Unlock()
			return e.step(method, e.w.Dice.Of("step "+method, serving, n))
		},
		Execute: func(nonce int) server.Deed {
			if e.isCalm() {
				return server.Deed{}
			}
			return e.execute(e.w.Dice.Of("answer", 0, nonce))
		},
	}
}

// step decides about one step of opening a connection to a server.
func (e *Extension) step(method string, r *rand.Rand) server.Deed {
	name := e.w.Faults.Draw(r, fault.Open)
	d := server.Deed{}
	switch name {
	case "late":
		d.After = time.Duration(r.Int64N(int64(3 * time.Second)))
	case "never":
		d.Never = true
	case "duplicate":
		if method == "connect" && r.IntN(2) == 0 {
			d.SameID = true
			e.w.Faults.Injected(name, "connection")
			return d
		}
		d.Twice = true
	case "hostiletext":
		d.Error = &jsonrpc.Error{Code: -32099, Message: hostileText(r)}
	case "oversize":
		d.Result = pad(e.w.Limits.Result + 1<<10)
	default:
		return d
	}
	e.w.Faults.Injected(name, method)
	return d
}

// execute decides about one execution of a call.
func (e *Extension) execute(r *rand.Rand) server.Deed {
	d := server.Deed{Pad: size(r, e.w.Limits.Result/4)}
	name := e.w.Faults.Draw(r, fault.Answer)
	switch name {
	case "late":
		span := e.w.Limits.Tunnel
		switch variant := r.IntN(3); variant {
		case 0:
			d.After = span * 8 / 10
		case 1:
			d.After = span + time.Duration(r.Int64N(int64(100*time.Millisecond))) - 50*time.Millisecond
			d.Twice = true
		default:
			d.After = span * 12 / 10
			d.Twice = true // it comes although it was taken back
		}
	case "never":
		d.Never = true
	case "duplicate":
		d.Twice = true
		if r.IntN(2) == 0 {
			d.Behind = time.Duration(r.Int64N(int64(time.Second)))
		}
	case "hostiletext":
		d.Title = hostileText(r)
		if r.IntN(2) == 0 {
			d.Error = &jsonrpc.Error{Code: -32099, Message: hostileText(r)}
		} else {
			d.IsError = r.IntN(2) == 0
		}
	case "oversize":
		d.Pad = e.w.Limits.Result + 1<<10
	default:
		if r.IntN(4) == 0 { // most tools take a moment; so calls are in flight when something happens
			d.After = time.Duration(r.Int64N(int64(200 * time.Millisecond)))
		}
		return d
	}
	e.w.Faults.Injected(name, "result")
	return d
}

// size draws how many bytes a payload has: mostly few, rarely many.
func size(r *rand.Rand, most int) int {
	switch dice := r.IntN(1000); {
	case dice < 900:
		return r.IntN(2 << 10)
	case dice < 995:
		return r.IntN(64 << 10)
	}
	return r.IntN(max(most, 1))
}
