package connection

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/lxzan/gws"

	"github.com/acpod/acpod/runtime/kernel"
)

const (
	// acceptTimeout bounds how long an upgraded socket waits for its actor.
	acceptTimeout = 10 * time.Second
	// gwsBuffer is the read buffer of gws; the wire in front of it has the one that matters.
	gwsBuffer  = 512
	wireBuffer = 2 << 10
)

// ServeHTTP is GET /acp. It runs on the HTTP server's goroutine and returns when the connection has its actor, or was turned
// away. It must be reached without the rules of the listener's other routes: who gets in is decided here alone.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		g.turnAway(w, "method", http.StatusMethodNotAllowed, "use GET with an upgrade to websocket")
		return
	}
	v := admit(g.cfg.Keys, g.cfg.AllowedOrigins, r.Host, r.Header)
	if v.status != http.StatusSwitchingProtocols {
		if v.status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Bearer realm="acpod"`)
		}
		g.turnAway(w, v.reason, v.status, v.text)
		return
	}
	strip(r.Header, v.echo)
	if status, text := handshake(r); status != 0 {
		if status == http.StatusUpgradeRequired {
			w.Header().Set("Upgrade", "websocket")
		}
		g.turnAway(w, "handshake", status, text)
		return
	}
	if g.descends(r) {
		g.turnAway(w, "descendant", http.StatusForbidden, "this client was started by an agent or a server of this pod, and those must not open sessions; to let one in all the same, set acp.auth_key and give it the key")
		return
	}
	ref := g.ref.Load()
	if g.draining.Load() != nil || ref == nil || !g.upgrades.enter() {
		g.busy(w, "draining", "the pod is stopping", retryAfter)
		return
	}
	defer g.upgrades.leave()
	s, err := g.sit(*ref, r, v.close != 0)
	if err != nil {
		g.full(w, err)
		return
	}
	s.identity = v.identity
	seated := false
	defer func() { // however this ends, also in a panic: a seat without an actor is given back
		if !seated {
			s.leave()
		}
	}()
	if !g.upgrade(w, r, s, v.echo) {
		return
	}
	if v.close != 0 {
		g.stats.refuse(v.reason)
		g.close(s, &Exit{Reason: Unauthorized}, v.text)
		return
	}
	if err := g.accept(*ref, s); err != nil {
		g.close(s, &Exit{Reason: Refused, Err: err}, "the pod cannot take this connection")
		return
	}
	seated = true
}

// descends asks whose process the client is. A client of a loopback address is on this machine, whatever address it has given itself: who binds
// another one of the machine's connects all the same.
func (g *Gateway) descends(r *http.Request) bool {
	if g.cfg.Descends == nil || len(g.cfg.Keys) > 0 {
		return false
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if err != nil || !ok {
		return false
	}
	here := local.AddrPort().Addr().Unmap().IsLoopback() || peer.Addr().Unmap().IsLoopback()
	return here && g.cfg.Descends(peer, local.AddrPort())
}

// turnAway refuses before the upgrade.
func (g *Gateway) turnAway(w http.ResponseWriter, why string, status int, text string) {
	g.stats.refuse(why)
	if ref := g.ref.Load(); ref != nil {
		ref.CountRefusal(why)
	}
	http.Error(w, text, status)
}

func (g *Gateway) busy(w http.ResponseWriter, why, text string, retry time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(int(max(retry+time.Second-1, time.Second)/time.Second)))
	g.turnAway(w, why, http.StatusServiceUnavailable, text)
}

// full says which limit is reached.
func (g *Gateway) full(w http.ResponseWriter, err error) {
	o, ok := errors.AsType[*kernel.Overloaded](err)
	if !ok {
		g.busy(w, "draining", "the pod is stopping", retryAfter)
		return
	}
	g.busy(w, o.Scope, fmt.Sprintf("the limit %s is reached: %d of %d are in use", o.Scope, o.Used, o.Limit), max(o.RetryAfter, retryAfter))
}

// close ends a socket that never had an actor.
func (g *Gateway) close(s *seat, exit *Exit, text string) {
	g.stats.exit(exit.Reason)
	goodbye(s.socket, closeFrame(exit.Reason.Code(), text), g.cfg.FlushTimeout)
	s.leave()
}

// sit reserves a seat, an account and the bytes that every connection costs, before anything is done for the socket. The
// address is the socket's own: what X-Forwarded-For or Forwarded say is anybody's to write. onlyToLeave is for one that is
// told why it cannot stay.
func (g *Gateway) sit(ref kernel.Ref, r *http.Request, onlyToLeave bool) (s *seat, err error) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		peer = netip.AddrPort{} // a socket without an IP address: counted as one address, and not loopback
	}
	var displaced kernel.Ref
	if onlyToLeave {
		s, err = g.entrance.enterToLeave(peer.Addr())
	} else {
		s, displaced, err = g.entrance.enter(peer.Addr(), time.Now())
	}
	if err != nil {
		return nil, err
	}
	if !displaced.IsZero() {
		displaced.Stop(&Exit{Reason: HandshakeDisplaced})
		ref.CountRefusal(string(HandshakeDisplaced))
	}
	s.account = ref.Account().Child("connection_bytes", g.cfg.ConnectionBytes)
	if s.reserve, err = s.account.Acquire(connectionReserve); err != nil {
		s.leave()
		return nil, err
	}
	s.id, s.peer, s.loopback = uuid.NewString(), r.RemoteAddr, peer.Addr().Unmap().IsLoopback()
	return s, nil
}

// handshake judges the headers of the upgrade; gws would answer everything with a bare 400.
func handshake(r *http.Request) (status int, text string) {
	h := r.Header
	switch {
	case !r.ProtoAtLeast(1, 1):
		return http.StatusBadRequest, "a WebSocket needs HTTP/1.1"
	case !hasToken(h, "Upgrade", "websocket") || !hasToken(h, "Connection", "upgrade"):
		return http.StatusUpgradeRequired, "this is a WebSocket: send Connection: Upgrade and Upgrade: websocket"
	case h.Get("Sec-Websocket-Version") != "13":
		return http.StatusBadRequest, "Sec-WebSocket-Version must be 13"
	}
	if key, err := base64.StdEncoding.DecodeString(h.Get("Sec-Websocket-Key")); err != nil || len(key) != 16 {
		return http.StatusBadRequest, "Sec-WebSocket-Key must be 16 bytes in base64"
	}
	h.Set("Upgrade", "websocket") // gws reads only the first line of each
	h.Set("Connection", "Upgrade")
	return 0, ""
}

func hasToken(h http.Header, name, token string) bool {
	for _, line := range h.Values(name) {
		for item := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(item), token) {
				return true
			}
		}
	}
	return false
}

// upgrade takes the socket from the HTTP server and answers 101. What the client sent ahead of that is kept.
func (g *Gateway) upgrade(w http.ResponseWriter, r *http.Request, s *seat, echo bool) bool {
	socket, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		g.turnAway(w, "hijack", http.StatusInternalServerError, "this listener cannot upgrade")
		return false
	}
	s.socket = socket
	if socket.SetDeadline(time.Time{}) != nil {
		return false
	}
	s.wire = newWire(socket, ahead(socket, rw.Reader), s.account, &g.cfg)
	s.wire.large = g.large.Load()
	s.reader = &reader{wire: s.wire}
	option := &gws.ServerOption{
		ReadMaxPayloadSize: int(g.cfg.FrameBytes), ReadBufferSize: gwsBuffer, Logger: silent{},
		ResponseHeader: http.Header{"Acp-Connection-Id": {s.id}},
	}
	if echo {
		option.SubProtocols = []string{subprotocol}
	}
	conn, err := gws.NewUpgrader(s.reader, option).UpgradeFromConn(s.wire, bufio.NewReaderSize(s.wire, gwsBuffer), r)
	if err != nil {
		g.stats.refuse("handshake")
		return false
	}
	s.wire.upgraded = true
	s.gws = conn
	return true
}

// ahead is a reader of the socket that begins with what the HTTP server has read of it already.
func ahead(socket net.Conn, read *bufio.Reader) *bufio.Reader {
	var in io.Reader = socket
	if n := read.Buffered(); n > 0 {
		early, _ := read.Peek(n)
		in = io.MultiReader(bytes.NewReader(bytes.Clone(early)), socket)
	}
	return bufio.NewReaderSize(in, wireBuffer)
}

// accept gets the socket its actor.
func (g *Gateway) accept(ref kernel.Ref, s *seat) error {
	pending, err := ref.Ask(accept{s})
	if err != nil {
		return err
	}
	defer pending.Drop()
	ctx, cancel := context.WithTimeout(context.Background(), acceptTimeout)
	defer cancel()
	_, lease, err := pending.Wait(ctx)
	lease.Release()
	return err
}

// silent is gws's logger: what it has to say is in the reasons of exits.
type silent struct{}

// Error implements gws.Logger.
func (silent) Error(...any) {}
