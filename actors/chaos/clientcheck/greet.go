package clientcheck

import (
	"fmt"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// greet waits for initialize and answers it, a little later than it could: a client that does not wait is seen.
func (r *run) greet() bool {
	r.waiting("initialize")
	if !r.until(r.cfg.patience(rowInitialize), func() bool { return r.sock == nil || r.hello != nil }) {
		r.sheet.put(failed(rowInitialize, "", "no initialize within %v; a pod closes with 1008", r.cfg.patience(rowInitialize)))
		return false
	}
	if r.hello == nil {
		return false
	}
	r.rest(r.cfg.hold)
	if r.sock == nil {
		return false
	}
	r.watch.answered = true
	r.respond(r.hello.id, []byte(initialized), nil)
	r.report.Client.Sockets++
	if r.first == nil {
		r.first = r.hello
		c := &r.report.Client
		c.Name, c.Version, c.Secret = jsonrpc.Show(r.hello.in.ClientName), jsonrpc.Show(r.hello.in.ClientBuild), r.hello.in.ClientSecret != ""
	}
	return true
}

// open waits for a session and asks its servers for connections before it is answered, as a pod may.
func (r *run) open() bool {
	r.expected = true
	defer r.answerRest()
	r.waiting("session/new")
	for r.until(r.cfg.Step, func() bool { return r.sock == nil || len(r.openings) > 0 }) && r.sock != nil {
		one := r.openings[0]
		r.openings = r.openings[1:]
		if one.method != acp.MethodSessionNew { // a session of another day, which it may try
			r.openBeside(one, false)
			continue
		}
		declared, marks, bad := judgeNew(one.params, r.servers())
		r.sheet.put(marks...)
		if bad != nil {
			r.respond(one.id, nil, bad)
			continue
		}
		r.report.Client.Generations = generations(declared)
		r.tunnels = tunnelsOf(declared, r.cfg.Tool)
		during := r.connect()
		r.respond(one.id, append(r.newSession(), serverStates(declared, "connecting")...), nil)
		if !during && r.sock != nil {
			r.connectLate()
		}
		return r.sock != nil
	}
	return false
}

// connect asks for a connection to each server and says whether all answered while the session's opening is.
func (r *run) connect() bool {
	var asked []*question
	for _, t := range r.tunnels {
		if method, params, ok := t.codec.Connect(t.declared); ok {
			t.connecting = r.ask(method, params)
			asked = append(asked, t.connecting)
		}
	}
	if len(asked) == 0 {
		return true
	}
	during := r.answered(rowMeanwhile, asked...)
	if during {
		r.sheet.put(passed(rowMeanwhile, "%d connects", len(asked)))
		r.connected()
	}
	return during
}

// connectLate gives those another chance that did not answer in the meantime.
func (r *run) connectLate() {
	var asked []*question
	for _, t := range r.tunnels {
		if t.connecting != nil {
			asked = append(asked, t.connecting)
		}
	}
	if r.answered(rowConnect, asked...) {
		r.sheet.put(failed(rowMeanwhile, "connect was answered behind session/new", "a client that answers one thing at a time waits for the pod, which waits for it"))
	}
	r.connected()
}

// connected reads the answers to connect.
func (r *run) connected() {
	for _, t := range r.tunnels {
		if t.connecting == nil {
			continue
		}
		if t.connecting.reply == nil {
			r.sheet.put(r.unanswered(rowConnect, "connect"))
			continue
		}
		id, next, one := judgeConnected(t, *t.connecting.reply)
		if next != nil {
			t.codec, t.target = next, t.declared.ID
			r.watch.targets[t.target] = true
			continue
		}
		if id != "" && r.watch.targets[id] {
			one = failed(rowDistinct, "connection id "+jsonrpc.Show(id), "another open connection has it")
			id = ""
		}
		r.sheet.put(one)
		if id != "" {
			t.target = id
			r.watch.targets[id] = true
		}
	}
}

// judgeConnected judges the answer to connect: a connection id, or the codec to go on with.
func judgeConnected(t *tunnel, f jsonrpc.Frame) (id string, next acp.Codec, one mark) {
	if f.Error != nil {
		e := jsonrpc.ParseError(f.Error)
		if codec, ok := acp.Fallback(t.codec, e); ok {
			return "", codec, mark{}
		}
		return "", nil, failed(rowConnect, show(f), "a server that was declared and cannot be connected is failed")
	}
	id, err := t.codec.ParseConnected(f.Result)
	if err != nil {
		return "", nil, failed(rowConnect, show(f), "%s", err)
	}
	return id, nil, passed(rowConnect, "generation %s, %s", t.codec.Name(), fmt.Sprintf("%d bytes", len(id)))
}
