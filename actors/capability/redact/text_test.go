package redact

import (
	"strings"
	"testing"
)

func TestWhatLooksLikeACredentialIsMasked(t *testing.T) {
	for text, want := range map[string]string{
		// by its name
		`password=hunter2`:                                       `password=***`,
		`password: hunter2, user: bob`:                           `password: ***, user: bob`,
		`PASSWD = "hun ter2" next`:                               `PASSWD = "***" next`,
		`{"access_token":"abc","expires":3600}`:                  `{"access_token":"***","expires":3600}`,
		`{"refresh_token" : "a\"b", "x":1}`:                      `{"refresh_token" : "***", "x":1}`,
		`"{\"client_secret\":\"abc\",\"x\":1}"`:                  `"{\"client_secret\":\"***\",\"x\":1}"`,
		`'api-key'='abc' apikey:abc API_KEY=abc`:                 `'api-key'='***' apikey:*** API_KEY=***`,
		`GITHUB_TOKEN=abc; clientSecret=x9 accessToken: y`:       `GITHUB_TOKEN=***; clientSecret=*** accessToken: ***`,
		`x-api-key: abc` + "\n" + `host: h`:                      `x-api-key: ***` + "\n" + `host: h`,
		`secret => abc`:                                          `secret => ***`,
		`token: {"id":"abc","n":["x"]} end`:                      `token: *** end`,
		`"token": 12345}`:                                        `"token": ***}`,
		`Authorization: Basic dXNlcjpwYXNz` + "\n" + `next: 1`:   `Authorization: ***` + "\n" + `next: 1`,
		`-H 'Authorization: Bearer abc def' -v`:                  `-H 'Authorization: ***' -v`,
		`authorization=Digest username="a b", response="c", x d`: `authorization=***`,
		`{"Authorization":"Bearer a, b","x":1}`:                  `{"Authorization":"***","x":1}`,
		`bearer: a b c`:                                          `bearer: ***`,
		`Set-Cookie: sid=1; Path=/`:                              `Set-Cookie: ***`,
		// by the scheme before it
		`sent Bearer abc12345xyz to h`:   `sent Bearer *** to h`,
		`Basic dXNlcjpwYXNzd29yZA== bad`: `Basic *** bad`,
		// by its form
		`id AKIAIOSFODNN7EXAMPLE!`:                                                    `id ***!`,
		`ASIAIOSFODNN7EXAMPLE`:                                                        `***`,
		`ghp_0123456789abcdefghijABCDEFGHIJ012345 is bad`:                             `*** is bad`,
		`eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl.`:                          `***.`,
		"k -----BEGIN RSA PRIVATE KEY-----\nMIIE\nx\n-----END RSA PRIVATE KEY----- z": "k -----BEGIN RSA PRIVATE KEY-----***-----END RSA PRIVATE KEY----- z",
		"-----BEGIN PRIVATE KEY-----\nMIIE":                                           "-----BEGIN PRIVATE KEY-----***",
		// by its place in a URL
		`dial https://bob:p@ss@h.example/x?a=1: refused`:          `dial https://***@h.example/x?a=1: refused`,
		`GET "https://tok@h/x"`:                                   `GET "https://***@h/x"`,
		`https://h/x?key=abc&n=1&X-Amz-Signature=def&code=g#frag`: `https://h/x?key=***&n=1&X-Amz-Signature=***&code=***#frag`,
		`https://h/cb#access_token=abc&state=1`:                   `https://h/cb#access_token=***&state=1`,
	} {
		got := Text(text)
		if got != want {
			t.Errorf("%s\n became %s\n want   %s", text, got, want)
		}
		if again := Text(got); again != got {
			t.Errorf("%s\n once more became %s", got, again)
		}
	}
}

func TestWhatIsNoCredentialStays(t *testing.T) {
	for _, text := range []string{
		``, `dial tcp 127.0.0.1:1: connection refused`, `tokenizer: fast`, `tokens: 500`, `secretary = Bob`, `the password is wrong`, `unexpected token } in JSON`,
		`basic authentication required`, `Bearer realm`, `broken: AKIAIOSFODNN7EXAMPLEX`, `xAKIAIOSFODNN7EXAMPLE`, `monkey=1`, `https://h/x?page=2&sort=key`,
		`bob@h.example`, `https://h/a@b`, `token:` + "\n" + `next`, `passwordless: yes`, `-----BEGIN CERTIFICATE-----MII-----END CERTIFICATE-----`, `12:30 key: c`,
	} {
		if got := Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestKnownSecretsAreMaskedHoweverTheyAreWritten(t *testing.T) {
	secrets := []string{"p/q r\"s+t", "p/q r", "abc", ""}
	for text, want := range map[string]string{
		`x p/q r"s+t y p/q r z abc`:    `x *** y *** z abc`,
		`u=p%2Fq+r%22s%2Bt&v`:          `u=***&v`,
		`u/p%2Fq%20r%22s+t/v`:          `u/***/v`,
		`{"n":"p/q r\"s+t"}`:           `{"n":"***"}`,
		`and token=zzz of nobody knew`: `and token=*** of nobody knew`,
	} {
		if got := TextWith(secrets, text); got != want {
			t.Errorf("%s\n became %s\n want   %s", text, got, want)
		}
	}
}

func TestALongTextTakesTimeInProportion(t *testing.T) {
	for _, piece := range []string{`token:`, `token="`, `authorization:"`, `token:{`, `\"`, `https://a`, `-----BEGIN `, `=`, `?key=`, `secret=\`, `bearer `} {
		Text(strings.Repeat(piece, 60_000/len(piece))) // what is quadratic takes minutes
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{`password=hunter2`, `{"token":"a\"b"}`, `Authorization: Digest a="b", c`, `https://u:p@h/?key=v`, "-----BEGIN PRIVATE KEY-----\nx", `Bearer abc12345xyz`,
		`token: {"a":[1,"]"]}`, `\"secret\":\"x\"`, "token=\xff\xfe", `AKIAIOSFODNN7EXAMPLE`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once := Text(s)
		if twice := Text(once); twice != once {
			t.Errorf("%q became %q and then %q", s, once, twice)
		}
		const secret = "Zq7-known-secret"
		if strings.Contains(TextWith([]string{secret}, s+secret+s), secret) {
			t.Errorf("a known secret is still in %q", s)
		}
		if got := Text(s + "\n" + `api_key="` + secret + `"` + "\n"); strings.Contains(got, secret) && !strings.ContainsAny(s, "\"'`\\{[=:-") {
			t.Errorf("%q shows the key", got)
		}
	})
}
