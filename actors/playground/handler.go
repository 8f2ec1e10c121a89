package playground

import (
	"embed"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strings"
)

//go:embed page
var page embed.FS

// Options of the page.
type Options struct {
	// Keyed tells the page to ask for the pod's key before it connects.
	Keyed bool
}

// Handler serves "/" and "/playground/…", GET and HEAD only. Who may reach it (loopback, the doors) is the caller's rule.
func Handler(options Options) http.Handler {
	files, err := fs.Sub(page, "page")
	if err != nil {
		panic(err) // the folder is compiled in
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { serve(w, r, files, "index.html") })
	mux.HandleFunc("GET /playground/config.json", func(w http.ResponseWriter, r *http.Request) {
		guard(w, r)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"key":%t}`, options.Keyed)
	})
	mux.HandleFunc("GET /playground/{file}", func(w http.ResponseWriter, r *http.Request) {
		serve(w, r, files, r.PathValue("file"))
	})
	return mux
}

func serve(w http.ResponseWriter, r *http.Request, files fs.FS, name string) {
	content, err := fs.ReadFile(files, name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	guard(w, r)
	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	_, _ = w.Write(content)
}

// hostname is what a Host header may look like to stand in the policy.
var hostname = regexp.MustCompile(`^[A-Za-z0-9.\-\[\]:]+$`)

// guard sets the headers that keep the page to itself. The socket is named besides 'self' because not every browser
// counts ws: to the page's own origin.
func guard(w http.ResponseWriter, r *http.Request) {
	connect := "'self'"
	if hostname.MatchString(r.Host) {
		connect += " ws://" + r.Host + " wss://" + r.Host
	}
	header := w.Header()
	header.Set("Content-Security-Policy", strings.Join([]string{
		"default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:", "connect-src " + connect,
		"base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
	}, "; "))
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-cache")
}
