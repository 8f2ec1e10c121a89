package watch

import (
	"strings"
	"testing"

	"github.com/acpod/acpod/actors/chaos/invariant"
)

const session = "sess_12345678-9abc-4def-8123-456789abcdef"

func TestALineThatBreaksAPromiseNamesIt(t *testing.T) {
	token := "Zm9vYmFyLXRva2VuLTEyMzQ1Njc4"
	for _, test := range []struct {
		name, line string
		text       bool
		breaks     invariant.Name
	}{
		{"a record", `{"time":"2026-01-01T00:00:00Z","level":"INFO","msg":"x","n":1,"list":["a"]}`, false, ""},
		{"a record as text", `time=2026-01-01T00:00:00Z level=INFO msg="x \\x1b[31m"`, true, ""},
		{"a stack has lines", `{"level":"ERROR","stack":"a\nb"}`, false, ""},
		{"an escaped control character in a value", `{"level":"INFO","title":"a\u001b[31m"}`, false, invariant.LogLines},
		{"a newline in a value", `{"level":"INFO","title":"a\nb"}`, false, invariant.LogLines},
		{"a value deep inside", `{"level":"INFO","a":[{"b":"\u202e"}]}`, false, invariant.LogLines},
		{"a raw escape sequence", "{\"level\":\"INFO\",\"title\":\"\x1b[2J\"}", false, invariant.LogLines},
		{"a raw escape sequence as text", "time=2026-01-01T00:00:00Z level=INFO msg=\x1b[2J", true, invariant.LogLines},
		{"a mark that turns text", "time=2026-01-01T00:00:00Z level=INFO msg=\u202e", true, invariant.LogLines},
		{"bytes that are no UTF-8", "time=2026-01-01T00:00:00Z level=INFO msg=\xff", true, invariant.LogLines},
		{"a forged record", `level=ERROR msg="a forged record"`, true, invariant.LogLines},
		{"a forged record as JSON", `{"time":"2026-01-01T00:00:00Z","level":"ERROR","msg":"a forged record"}`, false, invariant.LogLines},
		{"a whole forged record as text", `time=2026-01-01T00:00:00Z level=ERROR msg=forged-by-the-agent`, true, invariant.LogLines},
		{"a forged end of a record", `time=2026-01-01T00:00:00Z level=INFO msg=x title=a level=ERROR msg=y`, true, invariant.LogLines},
		{"text that would forge, between quotes", `time=2026-01-01T00:00:00Z level=INFO msg=x title="a level=ERROR msg=forged"`, true, ""},
		{"an escaped control character in text", `time=2026-01-01T00:00:00Z level=INFO msg=x title="a\\x1b[31m"`, true, ""},
		{"a control character that only the handler has quoted", `time=2026-01-01T00:00:00Z level=INFO msg=x title="a\x1b[31m"`, true, invariant.LogLines},
		{"a newline that only the handler has quoted", `time=2026-01-01T00:00:00Z level=INFO msg=x title="a\nb"`, true, invariant.LogLines},
		{"a stack as text", `time=2026-01-01T00:00:00Z level=INFO msg=x stack="a\nb"`, true, ""},
		{"a group in text", `time=2026-01-01T00:00:00Z level=INFO msg="x y" g.a=1 "g b"="" c=`, true, ""},
		{"a quote without its other", `time=2026-01-01T00:00:00Z level=INFO msg=x a="b`, true, invariant.LogLines},
		{"words without a name", `time=2026-01-01T00:00:00Z level=INFO msg=x more`, true, invariant.LogLines},
		{"a word behind a quote", `time=2026-01-01T00:00:00Z level=INFO msg="x"y`, true, invariant.LogLines},
		{"the rest of a record", `and so on"}`, false, invariant.LogLines},
		{"a race", `WARNING: DATA RACE`, false, invariant.LogLines},
		{"a session id", `{"level":"INFO","session":"` + session + `"}`, false, invariant.NoSecret},
		{"a tag of a session", `{"level":"INFO","session":"#12345678"}`, false, ""},
		{"a token", `{"level":"INFO","header":"Bearer ` + token + `"}`, false, invariant.NoSecret},
		{"a canary", `{"level":"INFO","arg":"cnry-argument-c0ffee"}`, false, invariant.NoSecret},
		{"half of a canary", `{"level":"INFO","arg":"xx cnry-arg…"}`, false, invariant.NoSecret},
		{"a word that contains a token is another word", `{"level":"INFO","arg":"` + token + `x"}`, false, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			book := invariant.NewBook(nil)
			secrets := NewSecrets(book)
			secrets.Add(token)
			Lines{Book: book, Secrets: secrets, JSON: !test.text, Where: "log"}.Judge(test.line)
			broken := book.Broken()
			if test.breaks == "" && len(broken) != 0 || test.breaks != "" && (len(broken) != 1 || broken[0] != test.breaks) {
				t.Errorf("broken are %v, want %q", broken, test.breaks)
			}
		})
	}
}

func TestAFoundSecretIsNotWrittenOut(t *testing.T) {
	book := invariant.NewBook(nil)
	secrets := NewSecrets(book)
	const token = "0123456789abcdef0123456789abcdef"
	secrets.Add(token)
	secrets.Look("log", []byte("it is "+token+" here"))
	for _, v := range book.Verdicts() {
		if strings.Contains(v.Violation, token) {
			t.Errorf("the report has the secret itself: %s", v.Violation)
		}
	}
}
