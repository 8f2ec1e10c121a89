package playground

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func get(t *testing.T, method, target string) *httptest.ResponseRecorder {
	t.Helper()
	response := httptest.NewRecorder()
	Handler(Options{Keyed: true}).ServeHTTP(response, httptest.NewRequest(method, target, nil))
	return response
}

func TestEveryAnswerForbidsInlineCodeAndFrames(t *testing.T) {
	for _, target := range []string{"/", "/playground/app.js", "/playground/style.css", "/playground/config.json", "/playground/icon.svg"} {
		response := get(t, http.MethodGet, target)
		if response.Code != http.StatusOK {
			t.Errorf("%s: %d", target, response.Code)
		}
		policy := response.Header().Get("Content-Security-Policy")
		for _, rule := range []string{"default-src 'none'", "frame-ancestors 'none'", "script-src 'self'", "style-src 'self'", "ws://example.com"} {
			if !strings.Contains(policy, rule) {
				t.Errorf("%s: policy %q lacks %q", target, policy, rule)
			}
		}
		if strings.Contains(policy, "unsafe") {
			t.Errorf("%s: policy %q allows inline code", target, policy)
		}
		if response.Header().Get("X-Content-Type-Options") != "nosniff" || response.Header().Get("Content-Type") == "" {
			t.Errorf("%s: headers %v", target, response.Header())
		}
	}
}

func TestAHostThatIsNoHostStaysOutOfThePolicy(t *testing.T) {
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	request.Host = "x; script-src *"
	response := httptest.NewRecorder()
	Handler(Options{}).ServeHTTP(response, request)
	if policy := response.Header().Get("Content-Security-Policy"); strings.Contains(policy, "*") {
		t.Errorf("the policy took the host over: %q", policy)
	}
}

func TestOnlyReadingIsServed(t *testing.T) {
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		if code := get(t, method, "/").Code; code != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, code)
		}
	}
	for _, target := range []string{"/playground/", "/playground/nothing.js", "/other", "/playground/..%2fhandler.go"} {
		if code := get(t, http.MethodGet, target).Code; code != http.StatusNotFound {
			t.Errorf("%s: %d", target, code)
		}
	}
}

func TestTheKeyIsAskedForOnlyWhereThereIsOne(t *testing.T) {
	if body := get(t, http.MethodGet, "/playground/config.json").Body.String(); body != `{"key":true}` {
		t.Errorf("config: %s", body)
	}
}

// The page must take what peers send as text. Everything that could make markup or code of it is listed here.
func TestThePageHasNoWayToTurnTextIntoMarkup(t *testing.T) {
	forbidden := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|\bstyle=|\bon[a-z]+="|javascript:|createContextualFragment|DOMParser|https?://[^w]`)
	err := fs.WalkDir(page, "page", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(page, name)
		if found := forbidden.Find(content); found != nil {
			t.Errorf("%s has %q", name, found)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
