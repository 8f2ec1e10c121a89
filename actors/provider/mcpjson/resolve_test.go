package mcpjson

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// one is the only server of a text.
func one(t *testing.T, entry string) Server {
	t.Helper()
	set := parsed("{\"mcpServers\": {\"a\":\n" + entry + "}}")
	if len(set.Servers) != 1 {
		t.Fatalf("%s: %s", entry, told(set))
	}
	return set.Servers[0]
}

func TestVariablesAreReplacedInEveryPlace(t *testing.T) {
	env := environment("A", "alpha-value", "HOME", "/home/u", "PORT", "80")
	s := one(t, `{"command": "${A}", "args": ["-x", "${A}/b c", "$$HOME"], "env": {"TOKEN": "t-${A}", "DEBUG": "1", "PATH": "/usr/local/bin"}, "cwd": "~/w"}`)
	got, err := s.Resolve(env)
	if err != nil {
		t.Fatal(err)
	}
	if got.Command != "alpha-value" || !reflect.DeepEqual(got.Args, []string{"-x", "alpha-value/b c", "$HOME"}) || got.Dir != "/home/u/w" ||
		!reflect.DeepEqual(got.Env, map[string]string{"TOKEN": "t-alpha-value", "DEBUG": "1", "PATH": "/usr/local/bin"}) {
		t.Errorf("%+v", got)
	}
	if want := []string{"t-alpha-value", "alpha-value"}; !reflect.DeepEqual(got.Secrets, want) {
		t.Errorf("secrets %q, want %q", got.Secrets, want)
	}
	s = one(t, `{"url": "https://h.example:${PORT}/mcp?key=${A}#x", "headers": {"Authorization": "Bearer ${A}-2", "X-Flag": "1"}}`)
	if got, err = s.Resolve(env); err != nil {
		t.Fatal(err)
	}
	if got.URL != "https://h.example:80/mcp?key=alpha-value" || got.Headers["Authorization"] != "Bearer alpha-value-2" || got.Headers["X-Flag"] != "1" {
		t.Errorf("%+v", got)
	}
	for _, secret := range []string{"Bearer alpha-value-2", "alpha-value-2", "alpha-value"} {
		if !slices.Contains(got.Secrets, secret) {
			t.Errorf("%q is no secret of %q", secret, got.Secrets)
		}
	}
}

func TestWhatCannotBeUsedTakesAwayThatServerWithoutAValue(t *testing.T) {
	env := environment("A", "hidden-value", "EMPTY", "", "NL", "hidden\r\nvalue", "NUL", "hidden\x00value", "BAD", "ftp://hidden-value/", "SPACE", " ")
	for entry, want := range map[string]FieldError{
		`{"command": "${NONE}"}`:                                    {Field: "command", Variable: "NONE", Line: 2},
		"{\"command\": \"x\",\n\"args\": [\"${A}\", \"${NONE}\"]}":  {Field: "args[1]", Variable: "NONE", Line: 3},
		"{\"command\": \"x\", \"env\": {\n\"T\": \"${env:NONE}\"}}": {Field: "env.T", Variable: "NONE", Line: 3},
		"{\"command\": \"x\",\n\n\"cwd\": \"/${NONE}\"}":            {Field: "cwd", Variable: "NONE", Line: 4},
		`{"command": "${EMPTY}"}`:                                   {Field: "command", Line: 2},
		`{"command": "x", "args": ["hidden-value ${"]}`:             {Field: "args[0]", Line: 2},
		`{"command": "x", "args": ["${NUL}"]}`:                      {Field: "args[0]", Line: 2},
		`{"serverUrl": "${NONE}"}`:                                  {Field: "url", Variable: "NONE", Line: 2},
		`{"url": "${BAD}"}`:                                         {Field: "url", Line: 2},
		`{"url": "hidden-value"}`:                                   {Field: "url", Line: 2},
		`{"url": "http://u:hidden-value@h/"}`:                       {Field: "url", Line: 2},
		`{"url": "http:///x"}`:                                      {Field: "url", Line: 2},
		`{"url": "http://h/%zz"}`:                                   {Field: "url", Line: 2},
		"{\"url\": \"http://h\", \"headers\": {\n\n\"Authorization\": \"Bearer ${NONE}\"}}": {Field: "headers.Authorization", Variable: "NONE", Line: 4},
		`{"url": "http://h", "headers": {"Authorization": "Bearer ${EMPTY}"}}`:              {Field: "headers.Authorization", Variable: "EMPTY", Line: 2},
		`{"url": "http://h", "headers": {"authorization": "${NONE:-}"}}`:                    {Field: "headers.authorization", Variable: "NONE", Line: 2},
		`{"url": "http://h", "headers": {"Authorization": ""}}`:                             {Field: "headers.Authorization", Line: 2},
		`{"url": "http://h", "headers": {"Authorization": "Bearer"}}`:                       {Field: "headers.Authorization", Line: 2},
		`{"url": "http://h", "headers": {"X-Key": "${SPACE}"}}`:                             {Field: "headers.X-Key", Variable: "SPACE", Line: 2},
		`{"url": "http://h", "headers": {"X-Key": "${NL}"}}`:                                {Field: "headers.X-Key", Line: 2},
		`{"url": "http://h", "headers": {"X-Key": "hidden\nvalue"}}`:                        {Field: "headers.X-Key", Line: 2},
		`{"url": "http://h", "headers": {"X-Key": "hidden\r"}}`:                             {Field: "headers.X-Key", Line: 2},
		`{"url": "http://h", "headers": {"X-Key": "hidden\u0000"}}`:                         {Field: "headers.X-Key", Line: 2},
		`{"url": "http://h", "headers": {"X-Key": "hidden-value ${A"}}`:                     {Field: "headers.X-Key", Line: 2},
	} {
		s := one(t, entry)
		got, err := s.Resolve(env)
		var field *FieldError
		if !errors.As(err, &field) {
			t.Errorf("%s: %+v, %v", entry, got, err)
			continue
		}
		if field.Field != want.Field || field.Variable != want.Variable || field.Line != want.Line || field.File != "mcp.json" || field.Server != "a" {
			t.Errorf("%s: %+v", entry, field)
		}
		if text := field.Problem().Error(); strings.Contains(text, "hidden") || strings.ContainsAny(text, "\r\n\x00") {
			t.Errorf("%s: it tells the value: %q", entry, text)
		}
		if !reflect.DeepEqual(got, Resolved{}) {
			t.Errorf("%s: something is left: %+v", entry, got)
		}
	}
}

func TestOtherCredentialsAreAnotherHash(t *testing.T) {
	texts := []string{
		`{"command": "x", "args": ["a", "b"]}`, `{"command": "x", "args": ["a b"]}`, `{"command": "x", "args": ["ab", ""]}`, `{"command": "x", "args": ["a", "b"], "env": {"K": "${A}"}}`,
		`{"command": "x", "args": ["a", "b"], "env": {"K": "w"}}`, `{"url": "http://x/"}`, `{"url": "http://x/", "type": "sse"}`, `{"url": "http://x/", "headers": {"K": "${A}"}}`,
		`{"command": "x", "args": ["a", "b"], "cwd": "/"}`,
	}
	seen := map[[32]byte]string{}
	for _, text := range texts {
		for _, value := range []string{"v", "w2"} {
			s := one(t, text)
			got, err := s.Resolve(environment("A", value))
			if err != nil {
				t.Fatal(err)
			}
			key := text
			if strings.Contains(text, "${A}") {
				key += value
			}
			if other, twice := seen[got.Hash]; twice && other != key {
				t.Errorf("%s and %s have one hash", other, key)
			}
			seen[got.Hash] = key
		}
	}
}

func TestShortAndPublicValuesAreNoSecrets(t *testing.T) {
	s := one(t, `{"command": "${HOME}/bin/x", "args": ["${P}", "${FLAG}"], "env": {"PATH": "/usr/local/bin:/bin", "LEVEL": "info", "K": "päss word"}}`)
	got, err := s.Resolve(environment("HOME", "/home/somebody", "P", "8080", "FLAG", "false"))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"p%C3%A4ss+word", "päss word"}; !reflect.DeepEqual(got.Secrets, want) {
		t.Errorf("%q, want %q", got.Secrets, want)
	}
}
