package door

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAHostIsLoopbackOnlyByNameOrAddress(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "localho\u017ft": false, "localhost:8848": true, "LocalHost:1": true, "127.0.0.1": true, "127.0.0.1:65535": true,
		"127.4.5.6:80": true, "[::1]": true, "[::1]:8848": true, "[0:0:0:0:0:0:0:1]:1": true,
		"": false, ":8848": false, "localhost.": false, "localhost.:80": false, "a.localhost": false, "localhost.evil.example": false,
		"localhost:evil": false, "localhost:123456": false, "localhost:": false, "127.0.0.1.evil.example": false, "127.1": false,
		"2130706433": false, "0x7f000001": false, "0.0.0.0": false, "10.0.0.1:8848": false, "evil.example": false,
		"[::1": false, "[::1]x": false, "[::1%lo]": false, "::1": false, "[127.0.0.1]": false, "[::]:80": false, "127.0.0.01": false,
		"user@localhost": false, "localhost@evil.example": false, "evil.example:localhost": false, "127.0.0.1:80:80": false,
	} {
		if got := LoopbackHost(host); got != want {
			t.Errorf("LoopbackHost(%q) = %v", host, got)
		}
	}
}

func request(method, host string, origins []string, site string) *http.Request {
	r := httptest.NewRequest(method, "/", nil)
	r.Host = host
	if origins != nil {
		r.Header["Origin"] = origins
	}
	if site != "" {
		r.Header.Set("Sec-Fetch-Site", site)
	}
	return r
}

// The whole product of hosts, origins, sites, methods and the two kinds of listener, against the three sentences of the
// rule written out once more.
func TestTheDoorMatrix(t *testing.T) {
	hosts := []struct {
		host     string
		loopback bool
	}{{"127.0.0.1:8848", true}, {"localhost:8848", true}, {"[::1]:8848", true}, {"rebound.example:8848", false}, {"192.0.2.7:8848", false}, {"", false}}
	origins := []struct {
		name string
		make func(host string) []string
		own  bool
	}{
		{"none", func(string) []string { return nil }, true},
		{"own", func(h string) []string { return []string{"http://" + h} }, true},
		{"other port", func(h string) []string { return []string{"http://127.0.0.1:1"} }, false},
		{"https", func(h string) []string { return []string{"https://" + h} }, false},
		{"own with a path", func(h string) []string { return []string{"http://" + h + "/"} }, false},
		{"foreign", func(string) []string { return []string{"http://evil.example"} }, false},
		{"extension", func(string) []string { return []string{"chrome-extension://abcdefghijklmnop"} }, false},
		{"null", func(string) []string { return []string{"null"} }, false},
		{"empty", func(string) []string { return []string{""} }, false},
		{"own twice", func(h string) []string { return []string{"http://" + h, "http://" + h} }, false},
		{"own, then foreign", func(h string) []string { return []string{"http://" + h, "http://evil.example"} }, false},
	}
	sites := []struct {
		site  string
		cross bool
	}{{"", false}, {"none", false}, {"same-origin", false}, {"same-site", false}, {"cross-site", true}, {"Cross-Site", true}}
	passed := 0
	for _, rules := range []Rules{{Loopback: true}, {}} {
		for _, h := range hosts {
			for _, o := range origins {
				for _, s := range sites {
					for _, method := range []string{"GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS"} {
						sent := o.make(h.host)
						own := o.own && (sent == nil || h.host != "")
						want := Open
						switch {
						case rules.Loopback && !h.loopback:
							want = ForeignHost
						case !own:
							want = ForeignOrigin
						case s.cross:
							want = CrossSite
						}
						if want == Open {
							passed++
						}
						got := rules.Check(request(method, h.host, sent, s.site))
						if got != want {
							t.Errorf("%+v %s host %q, origin %s, site %q: %q, want %q", rules, method, h.host, o.name, s.site, got, want)
						}
					}
				}
			}
		}
	}
	if passed == 0 {
		t.Fatal("no combination passes the door")
	}
}

func TestTheRulesFollowTheAddressOfTheListener(t *testing.T) {
	for addr, want := range map[string]bool{"127.0.0.1:1": true, "[::1]:1": true, "127.8.8.8:1": true, "0.0.0.0:1": false, "192.0.2.1:1": false, "[::]:1": false} {
		tcp, err := net.ResolveTCPAddr("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if got := For(tcp).Loopback; got != want {
			t.Errorf("For(%s).Loopback = %v", addr, got)
		}
	}
	if For(&net.UnixAddr{Name: "/run/x", Net: "unix"}).Loopback {
		t.Error("an address without a port counts as loopback")
	}
}

func TestTheGuardCountsARefusalAndTellsNothingOfWhatThePeerSent(t *testing.T) {
	var counted []Reason
	reached := 0
	h := Rules{Loopback: true}.Guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }), func(r Reason) { counted = append(counted, r) })
	for _, r := range []*http.Request{
		request("GET", "<b>evil.example</b>", nil, ""), request("POST", "localhost", []string{"http://evil.example"}, ""), request("OPTIONS", "localhost", nil, "cross-site"),
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusForbidden {
			t.Errorf("%s %s: %d", r.Method, r.Host, w.Code)
		}
		for _, peer := range []string{"evil", "<b>"} {
			if body := w.Body.String(); len(body) == 0 || strings.Contains(body, peer) {
				t.Errorf("the body repeats the peer: %q", body)
			}
		}
	}
	if fmt.Sprint(counted) != "[host origin cross_site]" || reached != 0 {
		t.Errorf("counted %v, reached %d", counted, reached)
	}
	h.ServeHTTP(httptest.NewRecorder(), request("GET", "localhost:1", []string{"http://localhost:1"}, "same-origin"))
	if reached != 1 {
		t.Error("an own request did not pass")
	}
}

func FuzzLoopbackHostNeverTakesAnotherName(f *testing.F) {
	for _, s := range []string{"localhost:80", "127.0.0.1", "[::1]:1", "evil.example", "localhost.evil", "[::ffff:127.0.0.1]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !LoopbackHost(s) {
			return
		}
		host, _, err := net.SplitHostPort(s)
		if err != nil {
			host = s
			if len(s) > 2 && s[0] == '[' {
				host = s[1 : len(s)-1]
			}
		}
		if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
			return
		}
		if len(host) != len("localhost") || !OwnOrigin("http://"+host, "localhost") {
			t.Fatalf("%q passes as loopback (host %q)", s, host)
		}
	})
}
