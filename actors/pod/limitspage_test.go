package pod

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/actors/capability/pins"
	"github.com/acpod/acpod/actors/pod/config"
	"github.com/acpod/acpod/actors/provider"
	"github.com/acpod/acpod/actors/session"
	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/actors/session/delivery"
	"github.com/acpod/acpod/actors/tunnel"
	"github.com/acpod/acpod/runtime/inspect"
	"github.com/acpod/acpod/runtime/kernel"
)

// limitsPage is docs/limits.md, and its rows by what stands in their first cell.
func limitsPage(t *testing.T) (page string, rows map[string][]string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	rows = map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "|---") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows[cells[0]] = cells
	}
	return string(text), rows
}

func TestThePageOfLimitsHasEveryKeyWithItsDefault(t *testing.T) {
	_, rows := limitsPage(t)
	c := config.Default()
	check := func(key string, value reflect.Value) {
		t.Helper()
		row := rows["`"+key+"`"]
		if len(row) != 6 {
			t.Errorf("%s has a row of %d cells, want key, default, bounds, at the bound, counter and worst case", key, len(row))
			return
		}
		want := fmt.Sprint(value.Interface())
		if size, ok := value.Interface().(config.Size); ok {
			want = strings.Replace(strings.Replace(size.String(), "iB", " iB", 1), " iB", "iB", 1)
			want = regexp.MustCompile(`^(\d+)`).ReplaceAllString(want, "$1 ")
		}
		if got := row[1]; got != want && got != want+" = off" && got != strings.TrimSuffix(want, " B")+" = off" {
			t.Errorf("%s: the page says %q, the code %q", key, got, want)
		}
		for i, cell := range row {
			if cell == "" {
				t.Errorf("%s: cell %d is empty", key, i+1)
			}
		}
	}
	limits := reflect.ValueOf(c.Limits)
	for i := range limits.NumField() {
		check(limits.Type().Field(i).Tag.Get("koanf"), limits.Field(i))
	}
	check("agent.max_sessions", reflect.ValueOf(c.Agent.MaxSessions))
	check("debug.flight_bytes", reflect.ValueOf(c.Debug.FlightBytes))
}

func TestThePageOfLimitsAddsUpToTheWorstCaseOfTheDefaults(t *testing.T) {
	page, rows := limitsPage(t)
	c := config.Default()
	p := worstCase(&c, assumed)
	mib := func(cell string) float64 {
		t.Helper()
		n, err := strconv.ParseFloat(strings.TrimSuffix(strings.Trim(cell, "*"), " MiB"), 64)
		if err != nil {
			t.Fatalf("%q is no number of MiB", cell)
		}
		return n
	}
	told := func(n int64) string { return strconv.FormatFloat(float64(n)/(1<<20), 'f', 1, 64) + " MiB" }
	sum := 0.0
	for _, part := range append(p.parts, summand{"garbage", "", p.garbage}, summand{"program", "", p.program}) {
		row := rows[part.name]
		if len(row) != 4 || row[3] != told(part.n) {
			t.Errorf("%s: the page says %q, the code %s", part.name, row, told(part.n))
			continue
		}
		sum += mib(row[3])
	}
	total := rows[""]
	if len(total) != 4 || total[3] != "**"+told(p.total())+"**" {
		t.Errorf("the page says %q, the code %s", total, told(p.total()))
	} else if diff := sum - mib(total[3]); diff > 1 || diff < -1 {
		t.Errorf("the rows make %.1f MiB, the sum is %s", sum, total[3])
	}
	for _, example := range []struct {
		change func(*config.Config)
		text   string
	}{
		{func(c *config.Config) { c.Limits.Connections, c.Limits.Sessions, c.Limits.PodBytes = 100, 100, 128<<20 }, "with 100, 100 and `128MiB` it is %d MiB"},
		{func(c *config.Config) {
			c.Limits.Connections, c.Limits.Sessions, c.Limits.PodBytes, c.Agent.MaxSessions = 20, 20, 16<<20, 2
			c.Limits.FrameBytes, c.Limits.AgentLineBytes, c.Limits.ResultBytes = 1<<20, 1<<20, 1<<20
		}, "and frames, lines and results of 1 MiB it is %d MiB"},
	} {
		c := config.Default()
		example.change(&c)
		if want := fmt.Sprintf(example.text, worstCase(&c, assumed).total()>>20); !strings.Contains(page, want) {
			t.Errorf("%q does not stand on the page", want)
		}
	}
}

// What the page calls fixed is what the code has.
func TestThePageOfLimitsHasTheConstantsOfTheCode(t *testing.T) {
	_, rows := limitsPage(t)
	said := func(row string, texts ...string) {
		t.Helper()
		cells, ok := rows[row]
		if !ok {
			t.Errorf("there is no row %q", row)
			return
		}
		for _, text := range texts {
			if !strings.Contains(strings.Join(cells, "|"), text) {
				t.Errorf("%q does not stand in the row %q", text, cells)
			}
		}
	}
	kib := func(n int64) string { return strconv.FormatInt(n>>10, 10) + " KiB" }
	mib := func(n int64) string { return strconv.FormatInt(n>>20, 10) + " MiB" }
	said("a request's head, on any listener", kib(headerBytes), fmt.Sprintf("%d lines", headerLines))
	said("records of suspended sessions", mib(session.RecordsBytes), kib(session.RecordBytes))
	said("sessions", kib(sessionBytes))
	said("agents", mib(agent.Footprint))
	said("agents' configurations", mib(delivery.Footprint))
	said("`servers_per_session`", kib(tunnel.Footprint))
	said("connections", kib(httpConnectionBytes))
	said("facade", kib(httpConnectionBytes), "4096")
	said("idempotency keys: in a session; in the pod's file", "16,384", mib(ledgerBytes))
	said("idempotency keys", kib(ledgerKeyBytes), "16,384")
	said("compiled schemas", mib(capability.SchemasBytes))
	said("compiled schemas kept, by the SHA-256 of their text", mib(capability.SchemasBytes))
	said("schemas being compiled", mib(capability.CompileBytes), strconv.Itoa(capability.Compiles))
	said("debug", kib(httpConnectionBytes), strconv.Itoa(debugConnections), mib(inspect.ProfileBytes), mib(inspect.Footprint))
	said("flight recording", strconv.Itoa(inspect.FlightWindows), mib(inspect.FlightGenerations))
	said("runtime", mib(runtimeBytes))
	said("servers of mcp.json", mib(provider.Footprint))
	said("pins", mib(pins.Bytes))
	said("pairs of kind and scope that are counted apart", strconv.Itoa(kernel.MaxRefusals))
	said("HTTP connections", strconv.Itoa(facadeConnections(config.Default().Limits)))
	if ledgerKeys != 16_384 {
		t.Errorf("the code remembers %d keys", ledgerKeys)
	}
}
