package httplink

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// newTransport is the HTTP client of one link, with connections of its own: what one server is sent reaches no connection of another,
// and ends with the link.
//
// Its round trips are used without an http.Client, which would follow redirects. No proxy is taken from the environment: it would be a
// second host that reads the headers of a plain http address, and mcp.json does not name it. HTTP/1.1 only: HTTP/2 keeps up to 4 MiB a
// stream that no account pays for. Compression is neither asked for nor taken.
func newTransport(dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Transport {
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}).DialContext
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            dial,
		Protocols:              protocols,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    dialTimeout,
		DisableCompression:     true,
		MaxIdleConns:           maxRequests,
		MaxIdleConnsPerHost:    maxControl,
		MaxConnsPerHost:        2*maxRequests + 2*maxControl,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
}
