package httplink

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/provider/link"
)

// TestACertificateThatNobodyVouchesForIsSentNothing: no header leaves, so the request may be sent again.
func TestACertificateThatNobodyVouchesForIsSentNothing(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a request has arrived")
	})}
	var all sync.WaitGroup
	all.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() { server.Close(); all.Wait() })
	r := run(t, Options{URL: "https://" + listener.Addr().String() + "/mcp", Headers: map[string]string{"Authorization": "Bearer secret"}}, 1<<20)
	r.awaitUp()
	r.request(1, "initialize")
	got := r.failure("1")
	if _, ok := errors.AsType[*UnreachableError](got); !ok || !errors.Is(got, link.ErrUnsent) {
		t.Errorf("the failure is %v", got)
	}
}
