package inspect

import (
	"embed"
	"net/http"
	"strings"
)

//go:embed page
var page embed.FS

// pageFile serves one file of the page. It holds no data of the pod, so it asks for no key; what it shows it fetches with one.
func pageFile(name string) http.Handler {
	text, err := page.ReadFile("page/" + name)
	if err != nil {
		panic(err) // the folder is compiled in
	}
	kind := map[string]string{"html": "text/html", "js": "text/javascript", "css": "text/css"}[name[strings.LastIndexByte(name, '.')+1:]]
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", kind+"; charset=utf-8")
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		_, _ = w.Write(text)
	})
}
