package agent

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAChunkHasItsSizeAndIsWholeText(t *testing.T) {
	for size := range 300 {
		text := Chunk("k", 3, 10, size)
		if want := max(size, len("[k 3/10 ]")); len(text) != want || !utf8.ValidString(text) || strings.ContainsAny(text[1:len(text)-1], "[]") {
			t.Fatalf("of %d bytes: %d, %q", size, len(text), text)
		}
	}
}

// However a pod cuts or joins the text, the book reads the same; and it names each way in which text can be wrong.
func TestABookFindsWhatIsMissingDoubledForeignOrChanged(t *testing.T) {
	row := func(key string, n int) (chunks []string) {
		for i := range n {
			chunks = append(chunks, Chunk(key, i+1, n, 90))
		}
		return chunks
	}
	good := row("k", 9)
	for name, r := range map[string]struct {
		chunks []string
		gaps   bool
		wrong  string
	}{
		"all":            {good, false, ""},
		"one is lost":    {append(append([]string{}, good[:4]...), good[5:]...), false, "are lost"},
		"a known gap":    {append(append([]string{}, good[:4]...), good[5:]...), true, ""},
		"the last":       {good[:8], false, "after chunk 8 of 9"},
		"the last, gaps": {good[:8], true, "after chunk 8 of 9"},
		"one comes twice": {append(append([]string{}, good[:4]...), good[3:]...), false,
			`chunk 4 of turn "k" came after chunk 4`},
		"two change places": {[]string{good[1], good[0]}, true, "chunk 1 of turn \"k\" came after chunk 2"},
		"a foreign one":     {append(row("other", 1), good...), false, `something of turn "other"`},
		"a changed byte":    {append([]string{strings.Replace(good[0], "]", "!]", 1)}, good[1:]...), false, "other bytes"},
		"a cut one":         {append(append([]string{}, good[:8]...), good[8][:40]), false, "within a chunk"},
		"something else":    {append([]string{"hello"}, good...), false, "outside of any chunk"},
	} {
		rng := rand.New(rand.NewPCG(1, uint64(len(name))))
		b := Book{Key: "k", Size: 90, Gaps: r.gaps}
		for text := strings.Join(r.chunks, ""); text != ""; {
			n := min(1+rng.IntN(200), len(text))
			b.Read(text[:n])
			text = text[n:]
		}
		b.End(9)
		wrong := strings.Join(b.Wrong(), "; ")
		if (wrong == "") != (r.wrong == "") || !strings.Contains(wrong, r.wrong) {
			t.Errorf("%s: %q, want %q", name, wrong, r.wrong)
		}
	}
}

func TestANoteStaysOnePieceAndAFloodIsCounted(t *testing.T) {
	b := Book{Key: "k"}
	b.Read(Note("k", "call", "x [a]\n\x1b") + Filler("k", 40) + Note("k", "choice", "allow"))
	b.End(0)
	if len(b.Wrong()) > 0 || strings.Join(b.Notes, "|") != "call x .a...|choice allow" || b.Fill != 40 {
		t.Errorf("%q %q %d", b.Notes, b.Wrong(), b.Fill)
	}
	if b.Filled(40); len(b.Wrong()) > 0 {
		t.Errorf("all of it came: %q", b.Wrong())
	}
	if b.Filled(41); len(b.Wrong()) != 1 {
		t.Errorf("a byte of it is lost: %q", b.Wrong())
	}
}
