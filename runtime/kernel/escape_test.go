package kernel_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/acpod/acpod/runtime/kernel"
)

func TestATextOfAnyLengthIsCutToTheCharactersThatAreShown(t *testing.T) {
	for _, letter := range []string{"a", "\n", "名", "\xff", "😀"} {
		for n := range 6 * kernel.AttrChars {
			s := strings.Repeat(letter, n)
			got := kernel.Escape(s, kernel.AttrChars)
			if utf8.RuneCountInString(got) > kernel.AttrChars || !utf8.ValidString(got) || strings.Contains(got, "\n") {
				t.Fatalf("%d times %q is shown as %q", n, letter, got)
			}
			if short := letter == "a" && n <= kernel.AttrChars; short && got != s {
				t.Fatalf("%q is shown as %q", s, got)
			}
		}
	}
}
