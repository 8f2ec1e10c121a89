package provider

import (
	"encoding/json/v2"
	"strings"
	"testing"
)

// A desk shows each name in one alphabet, so a server may publish any that can be sent: what is sent, and what is pinned, is what was published.
func TestNamesThatCouldNotBeShownAreKeptAsTheyWerePublished(t *testing.T) {
	for name, kept := range map[string]bool{
		"read": true, "a b": true, " a": true, "zero\u200bwidth": true, "a/b": true, strings.Repeat("n", 512): true,
		"": false, "a\nb": false, "a\x1b[31mb": false, "\uFFFD": false, strings.Repeat("n", 513): false,
	} {
		quoted, err := json.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		element := `{"name":` + string(quoted) + `,"description":"d","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`
		p, err := parsePage([]byte(`{"tools":[`+element+`,{"name":"sibling","inputSchema":{}}]}`), filter{}, 1<<16)
		if err != nil || len(p.tools) != map[bool]int{true: 2, false: 1}[kept] {
			t.Fatalf("%.20q: %v, %+v", name, err, p)
		}
		if one := p.tools[0]; kept && (one.Name != name || string(one.Raw) != element || one.Description != "d" || !one.Annotations.ReadOnly.True()) {
			t.Errorf("%.20q became %+v", name, one)
		}
	}
}
