package clientcheck

import (
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// The subprotocols of the wire.
const (
	subprotocol  = "acp.v1"
	bearerPrefix = "openab.bearer."
)

// entry is what becomes of an attempt to come in.
type entry struct {
	status    int    // 101, or the refusal
	text      string // of a refusal
	wrongKey  bool   // 101, then close 4401
	echo      bool   // of acp.v1
	presented string // how the key came, in words
	marks     []mark
}

// judgeUpgrade judges the request for a socket as a pod with that key does, "" for none.
func judgeUpgrade(r *http.Request, key string) entry {
	e := entry{status: http.StatusSwitchingProtocols}
	e.upgrade(r)
	offered := items(r.Header, "Sec-Websocket-Protocol")
	for _, one := range offered {
		e.echo = e.echo || one == subprotocol
	}
	switch {
	case len(offered) > 0 && !e.echo:
		e.marks = append(e.marks, failed(rowSubprotocol, fmt.Sprintf("%d subprotocols, and not %s", len(offered), subprotocol),
			"a pod echoes only %s, and a browser drops a socket that echoes none of what it offered", subprotocol))
	case len(offered) == 0:
		e.marks = append(e.marks, passed(rowSubprotocol, "none is offered"))
	default:
		e.marks = append(e.marks, passed(rowSubprotocol, "%s", subprotocol))
	}
	if key == "" {
		e.host(r)
	} else {
		e.key(r, offered, key)
	}
	return e
}

// refuse keeps the first reason not to let it in.
func (e *entry) refuse(status int, text string) {
	if e.status == http.StatusSwitchingProtocols {
		e.status, e.text = status, text
	}
}

func (e *entry) upgrade(r *http.Request) {
	why := ""
	nonce, err := base64.StdEncoding.DecodeString(r.Header.Get("Sec-Websocket-Key"))
	switch {
	case r.URL.Path != "/acp":
		why = "the path is /acp"
		e.refuse(http.StatusNotFound, why)
	case r.Method != http.MethodGet:
		why = "the method is GET"
		e.refuse(http.StatusMethodNotAllowed, why)
	case !has(r.Header, "Upgrade", "websocket") || !has(r.Header, "Connection", "upgrade"):
		why = "it has no Connection: Upgrade and Upgrade: websocket"
		e.refuse(http.StatusUpgradeRequired, why)
	case r.Header.Get("Sec-Websocket-Version") != "13":
		why = "Sec-WebSocket-Version must be 13"
		e.refuse(http.StatusBadRequest, why)
	case err != nil || len(nonce) != 16:
		why = "Sec-WebSocket-Key must be 16 bytes in base64"
		e.refuse(http.StatusBadRequest, why)
	}
	if why != "" {
		e.marks = append(e.marks, failed(rowUpgrade, r.Method+" "+jsonrpc.Show(r.URL.Path), "%s", why))
		return
	}
	e.marks = append(e.marks, passed(rowUpgrade, ""))
}

// host is for a pod without a key: what keeps other pages and rebound names out.
func (e *entry) host(r *http.Request) {
	name := r.Host
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	name = strings.Trim(name, "[]")
	address, err := netip.ParseAddr(name)
	if !strings.EqualFold(name, "localhost") && (err != nil || !address.Unmap().IsLoopback()) {
		e.refuse(http.StatusForbidden, "Host is no loopback name")
		e.marks = append(e.marks, failed(rowHost, jsonrpc.Show(r.Host), "a pod without a key answers 403"))
		return
	}
	came := jsonrpc.Show(r.Host)
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
		came += ", Origin " + jsonrpc.Show(origin) + ": it has to stand in acp.allowed_origins of a pod without a key"
	}
	e.marks = append(e.marks, passed(rowHost, "%s", came))
}

// key decides as a pod does: Authorization when it is there, else the subprotocol.
func (e *entry) key(r *http.Request, offered []string, key string) {
	why, status := "", http.StatusUnauthorized
	token, byProtocol := "", false
	for _, one := range offered {
		if rest, found := strings.CutPrefix(one, bearerPrefix); found && !byProtocol {
			token, byProtocol = rest, true
		}
	}
	lines := r.Header.Values("Authorization")
	bearer, isBearer := "", false
	if len(lines) == 1 {
		bearer, isBearer = strings.CutPrefix(lines[0], "Bearer ")
	}
	same := func(given string) bool { return subtle.ConstantTimeCompare([]byte(given), []byte(key)) == 1 }
	switch {
	case len(lines) > 1:
		why, status = "Authorization stands twice", http.StatusBadRequest
	case isBearer && !same(bearer):
		why = "the key in Authorization is another one; it decides, whatever the subprotocol says"
	case isBearer:
		e.presented = "in Authorization"
	case byProtocol && !same(token):
		e.wrongKey = true
		why = "the key in the subprotocol is another one"
	case byProtocol:
		e.presented = "in a subprotocol"
	case len(lines) == 1:
		why = "Authorization is not of the form Bearer KEY"
	case strings.Contains(r.URL.RawQuery, key):
		why = "a key in the query is never looked at"
	default:
		why = "there is none"
	}
	if why == "" {
		e.marks = append(e.marks, passed(rowKey, "%s", e.presented))
		return
	}
	if !e.wrongKey {
		e.refuse(status, why)
	}
	e.marks = append(e.marks, failed(rowKey, "", "%s", why))
}

// items are the entries of a header that is a list.
func items(h http.Header, name string) (list []string) {
	for _, line := range h.Values(name) {
		for item := range strings.SplitSeq(line, ",") {
			if item = strings.TrimSpace(item); item != "" {
				list = append(list, item)
			}
		}
	}
	return list
}

func has(h http.Header, name, token string) bool {
	for _, item := range items(h, name) {
		if strings.EqualFold(item, token) {
			return true
		}
	}
	return false
}
