package tunnel

import (
	"sync/atomic"

	"github.com/acpod/acpod/protocol/acp"
)

// opening is what is known of one mcp/connect, shared by the three who may learn
// of its end first: the socket's reader, the actor, and the release of the actor's
// generation. Whatever order they come in, exactly one of them sees both that the
// connection was opened and that nobody wants it any more, and that one closes it.
type opening struct {
	codec  acp.Codec
	stream string
	stats  *Stats
	state  atomic.Pointer[opened] // nil: not answered
}

// opened is a state of an opening: answered with an id, or closed.
type opened struct {
	id     string
	closed bool
}

// arrived is [Out.Arrived] of the mcp/connect: it runs in the reader. An answer
// without a usable id has opened nothing that could be named, and closed.
func (o *opening) arrived(result []byte) *Farewell {
	id, err := o.codec.ParseConnected(result)
	if err != nil {
		return nil
	}
	o.stats.open()
	if o.state.CompareAndSwap(nil, &opened{id: id}) {
		return nil
	}
	o.stats.dismissed()
	return o.farewell(id) // it was closed before
}

// close ends the opening. It tells whether a connection was opened and not closed
// yet, and what closes it, nil when its generation has no disconnect. An answer
// that still comes is closed by the reader.
func (o *opening) close() (f *Farewell, open bool) {
	before := o.state.Swap(&opened{closed: true})
	if before == nil || before.closed {
		return nil, false
	}
	return o.farewell(before.id), true
}

func (o *opening) farewell(id string) *Farewell {
	method, params, request, ok := o.codec.Disconnect(id)
	if !ok {
		return nil
	}
	return &Farewell{Stream: o.stream, ConnectionID: id, Method: method, Params: params, Request: request}
}
