package pod

import (
	"math"
	"reflect"
	"testing"

	"github.com/acpod/acpod/actors/facade"
	"github.com/acpod/acpod/actors/pod/config"
	"github.com/acpod/acpod/actors/provider"
)

// assumed is the machine of the tables in docs/limits.md.
var assumed = machine{procs: 4, program: 32 << 20}

func TestTheWorstCaseIsTheSumOfItsParts(t *testing.T) {
	c := config.Default()
	p := worstCase(&c, assumed)
	sum := p.garbage
	for _, part := range p.parts {
		if part.n <= 0 || part.name == "" || part.from == "" {
			t.Errorf("%+v", part)
		}
		sum += part.n
	}
	if sum != p.limit() || p.total() != sum+assumed.program || p.garbage < garbageLeast {
		t.Errorf("the parts make %d, the limit is %d, the total %d", sum, p.limit(), p.total())
	}
	if p.limit() <= int64(c.Limits.PodBytes) {
		t.Errorf("%d is not above pod_bytes", p.limit())
	}
}

// Each key that lets a peer make the pod hold more makes the promise larger, by what one more costs at least.
func TestEachLimitThatIsRaisedRaisesTheWorstCase(t *testing.T) {
	base := config.Default()
	was := worstCase(&base, assumed).total()
	for name, row := range map[string]struct {
		raise func(*config.Config)
		by    int64
	}{
		"pod_bytes":        {func(c *config.Config) { c.Limits.PodBytes += 1 << 20 }, 5 << 20 / 4},
		"connections":      {func(c *config.Config) { c.Limits.Connections += 800 }, 900 * httpConnectionBytes},
		"sessions":         {func(c *config.Config) { c.Limits.Sessions += 100 }, 100 * sessionBytes},
		"max_sessions":     {func(c *config.Config) { c.Agent.MaxSessions += 100 }, 100 << 20},
		"frame_bytes":      {func(c *config.Config) { c.Limits.FrameBytes = 64 << 20 }, 8 * 48 << 20},
		"agent_line_bytes": {func(c *config.Config) { c.Limits.AgentLineBytes = 64 << 20 }, 8 * 48 << 20},
		"flight_bytes":     {func(c *config.Config) { c.Debug.FlightBytes = 16 << 20 }, 64 << 20},
	} {
		c := config.Default()
		row.raise(&c)
		if got := worstCase(&c, assumed).total() - was; got < row.by || got > row.by*5/4 {
			t.Errorf("%s: raised by %d, want %d and an eighth", name, got, row.by)
		}
	}
	proxied := config.Default()
	proxied.Agent.Delivery = "proxy"
	before := worstCase(&proxied, assumed).total()
	proxied.Agent.MaxSessions += 100
	if got := worstCase(&proxied, assumed).total() - before; before <= was || got < 200*(8*httpConnectionBytes+facade.ProxyFootprint) {
		t.Errorf("proxies: %d more than without, raised by %d", before-was, got)
	}
	served := assumed
	served.servers = 10
	if got := worstCase(&base, served).total() - was; got < 10*provider.Footprint || got > 10*provider.Footprint*5/4 {
		t.Errorf("ten servers of mcp.json: raised by %d", got)
	}
	alone := assumed
	alone.alone = true
	if got := worstCase(&base, alone).total(); got > was-int64(publicConnections(base.Limits))*httpConnectionBytes {
		t.Errorf("a facade that runs alone costs %d", got)
	}
	small := config.Default()
	small.MCP, small.Debug.Listen, small.Agent.Driver = nil, "", "none"
	if got := worstCase(&small, assumed).total(); got >= was {
		t.Errorf("what is off costs as much: %d", got)
	}
}

func TestAWorstCaseThatNoNumberHoldsIsTheLargest(t *testing.T) {
	c := config.Default()
	limits := reflect.ValueOf(&c.Limits).Elem()
	for i := range limits.NumField() {
		limits.Field(i).SetInt(math.MaxInt64)
	}
	c.Limits.Connections, c.Limits.Sessions = 1_000_000, 1_000_000
	if got := worstCase(&c, assumed).total(); got != math.MaxInt64 {
		t.Errorf("%d", got)
	}
}

func TestWhatASmallPodPromisesIsSmall(t *testing.T) {
	c := config.Default()
	c.Limits.PodBytes, c.Limits.Connections, c.Limits.Sessions, c.Agent.MaxSessions = 16<<20, 20, 20, 2
	c.Limits.FrameBytes, c.Limits.AgentLineBytes, c.Limits.ResultBytes = 1<<20, 1<<20, 1<<20
	if got := worstCase(&c, assumed).total(); got > 500<<20 {
		t.Errorf("%d MiB", got>>20)
	}
}
