package session

import (
	"strings"
	"testing"

	"github.com/acpod/acpod/protocol/acp"
)

// update sends an update of any kind.
func (f *fakeAgent) update(update string) {
	f.of.pod.t.Helper()
	f.tellRaw([]byte(`{"sessionId":"` + f.id() + `","update":` + update + `}`))
	f.of.pod.settle()
}

// A client that comes back is told the modes and options as the agent has them now, whoever set them.
func TestAResumeTellsModesAndOptions(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 1)
		id := c.opened("[]")
		a := p.agents.last()
		resumed := func() string {
			t.Helper()
			got := c.answer(c.resume(id, ""))
			if got == nil || got.err != nil {
				t.Fatalf("resume: %+v", got)
			}
			before, _, _ := strings.Cut(got.result, `,"_meta"`)
			return before
		}
		options := `"configOptions":[{"id":"way","category":"mode","name":"W","type":"select","currentValue":"x","options":[]},{"id":"model","name":"M","type":"select","currentValue":"m","options":[]}]`
		modes := func(now string) string {
			return `"modes":{"currentModeId":"` + now + `","availableModes":[{"id":"x","name":"X"},{"id":"y","name":"Y"}]}`
		}
		want := func(modes, options string) {
			t.Helper()
			if got := resumed(); got != "{"+modes+","+options {
				t.Errorf("it is told %s", got)
			}
		}
		want(modes("x"), options)
		a.update(`{"sessionUpdate":"current_mode_update","currentModeId":"y"}`)
		want(modes("y"), options)
		c.pass(id, acp.MethodSessionSetMode, `,"modeId":"x"`)
		want(modes("y"), options) // the agent has not agreed yet
		a.reply(0, "{}", nil)
		want(modes("x"), options)
		c.pass(id, acp.MethodSessionSetOpt, `,"configId":"way","value":"y"`)
		a.reply(1, `{"configOptions":[{"id":"way"}]}`, nil)
		want(modes("x"), `"configOptions":[{"id":"way"}]`)
		a.update(`{"sessionUpdate":"config_option_update","configOptions":[]}`)
		want(modes("x"), `"configOptions":[]`)
		a.update(`{"sessionUpdate":"config_option_update","configOptions":["` + strings.Repeat("x", settingBytes) + `"]}`)
		if got := resumed(); got != "{"+modes("x") {
			t.Errorf("options that are too long: %.200s", got)
		}
		c.close(id)
		p.atRest()
	})
}

// An agent that takes over in the middle may have another mode than its client believes.
func TestAnotherAgentsModeIsTold(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 1)
		id := c.opened("[]")
		a := p.agents.last()
		a.update(`{"sessionUpdate":"current_mode_update","currentModeId":"y"}`)
		a.update(`{"sessionUpdate":"config_option_update","configOptions":[]}`)
		a.exit(0)
		c.heard()
		c.prompt(id, "hello")
		said := strings.Join(c.heard(), "\n")
		for _, want := range []string{
			`{"sessionId":"` + id + `","update":{"sessionUpdate":"current_mode_update","currentModeId":"x"}}`,
			`{"sessionId":"` + id + `","update":{"sessionUpdate":"config_option_update","configOptions":[{"id":"way",`,
		} {
			if !strings.Contains(said, want) {
				t.Errorf("the client heard %s\nwithout %s", said, want)
			}
		}
	})
}
