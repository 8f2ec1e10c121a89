package mcpjson

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// page is docs/providers.md.
func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/providers.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestThePageOfProvidersHasEveryKeyWithItsDefaultAndEveryBound(t *testing.T) {
	text := page(t)
	for _, name := range append(fieldNames, topKeys...) {
		if !strings.Contains(text, "`"+name+"`") && !strings.Contains(text, "`"+name+"\": ") && !strings.Contains(text, "\""+name+"\": ") {
			t.Errorf("%s does not stand on the page", name)
		}
	}
	for word := range kinds {
		if !strings.Contains(folded(text), word) {
			t.Errorf("the type %s does not stand on the page", word)
		}
	}
	for _, level := range logLevels {
		if !strings.Contains(text, "`"+level+"`") {
			t.Errorf("the level %s does not stand on the page", level)
		}
	}
	for _, row := range []string{
		fmt.Sprintf("| `request_timeout_secs` | %v |", DefaultRequestTimeout.Seconds()), fmt.Sprintf("| 0 = off, %v |", DefaultPingTimeout.Seconds()),
		fmt.Sprintf("| `idle_ttl_secs` | %v |", DefaultIdleTTL.Seconds()), fmt.Sprintf("| `max_concurrent_servers` | %d |", DefaultMaxConnected),
		fmt.Sprintf("%d MiB a file, %d servers, %d arguments, %d variables, %d headers, %d patterns a list, %d roots, %d KiB a string",
			MaxFileBytes>>20, MaxServers, MaxArgs, MaxEnv, MaxHeaders, MaxPatterns, MaxRoots, MaxString>>10),
	} {
		if !strings.Contains(text, row) {
			t.Errorf("%q does not stand on the page", row)
		}
	}
	for _, name := range reserved[:7] {
		if !strings.Contains(strings.ToLower(text), "`"+name+"`") {
			t.Errorf("the header %s does not stand on the page", name)
		}
	}
}

func TestTheExampleOnThePageIsRead(t *testing.T) {
	_, rest, _ := strings.Cut(page(t), "<<'JSON'\n")
	example, _, found := strings.Cut(rest, "JSON\n")
	if !found {
		t.Fatal("there is no example")
	}
	set := parsed(example)
	if told(set) != "" || names(set.Servers) != "files notes" {
		t.Fatalf("%s: %s", names(set.Servers), told(set))
	}
	if _, err := set.Servers[1].Resolve(environment("NOTES_TOKEN", "x")); err != nil {
		t.Error(err)
	}
}
