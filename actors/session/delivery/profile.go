package delivery

import (
	"path"
	"slices"
	"strings"
)

// Profile is what is particular to an agent: a row of [Profiles].
type Profile struct {
	Name    string   // in agent.profile
	Words   []string // each tells this agent, in agentInfo.name or in its command
	Honours bool     // it uses the mcpServers of session/new, or nobody knows that it does not
	// Expands: it puts the environment's values for ${NAME} into headers of session/new, and would show a literal token in the arguments of
	// a child. All others take ${NAME} as it stands, or for nothing.
	Expands bool
	Files   []Place // where its own configuration names servers
	Hand    string  // what an operator has to do beside; "" = nothing
}

// Place is a file of an agent's own configuration in which servers are named, and how.
type Place struct {
	Paths    []string // relative to the folder of the session: the first that is there, else the first
	Workdir  bool     // relative to agent.workdir, whatever the session's folder is
	Each     bool     // Paths[0] is a pattern: every file that is there, and none is made
	TOML     bool     // else JSON, with comments and trailing commas
	Servers  string   // the table of servers
	Grants   string   // the list that names servers whose tools run without a question; "" = there is none
	Variable string   // how it reads OPENAB_SESSION_TOKEN; "" = see TokenKey
	TokenKey string   // the key that names the variable of a bearer token
	URLKey   string   // the key of an HTTP server's address
	Remote   string   // further members of an HTTP server, JSON
	Local    string   // further members of a stdio server, JSON
	Argv     bool     // a stdio server's command is one list, and its environment is called environment
}

// Profiles are the agents that are known. An agent that nobody knows is generic, and is believed when it says that it takes servers over
// HTTP: a file that it does not read would leave it without tools, and the protocol has it use what session/new names. What stands here was measured with the agents of 2026-11, or, for Cursor and Kiro, is what
// their documentation says.
var Profiles = []Profile{
	{Name: "generic", Honours: true, Files: []Place{{Paths: []string{".openab/mcp-facade.json"}, Workdir: true, Servers: "mcpServers", Variable: "${" + TokenVariable + "}", URLKey: "url"}},
		Hand: "this agent's own configuration has to name the server of .openab/mcp-facade.json (below agent.workdir), or set agent.profile, or agent.delivery = \"acp\" for an agent that uses the mcpServers of session/new"},
	{Name: "claude", Words: []string{"claude"}, Honours: true, Expands: true,
		Files: []Place{{Paths: []string{".mcp.json"}, Servers: "mcpServers", Variable: "${" + TokenVariable + "}", URLKey: "url", Remote: `"type":"http"`, Local: `"type":"stdio"`}}},
	{Name: "codex", Words: []string{"codex"}, Honours: true,
		Files: []Place{{Paths: []string{".codex/config.toml"}, TOML: true, Servers: "mcp_servers", TokenKey: "bearer_token_env_var", URLKey: "url"}},
		Hand:  "Codex reads .codex/config.toml of a folder only where its own config.toml trusts that folder ([projects.\"<folder>\"] trust_level = \"trusted\")"},
	{Name: "gemini", Words: []string{"gemini"}, Honours: true,
		Files: []Place{{Paths: []string{".gemini/settings.json"}, Servers: "mcpServers", Variable: "${" + TokenVariable + "}", URLKey: "httpUrl"}},
		Hand:  "Gemini reads .gemini/settings.json of a folder only where it trusts that folder (GEMINI_CLI_TRUST_WORKSPACE=true in agent.env)"},
	{Name: "opencode", Words: []string{"opencode"}, Honours: true,
		Files: []Place{{Paths: []string{"opencode.json", "opencode.jsonc"}, Servers: "mcp", Variable: "{env:" + TokenVariable + "}", URLKey: "url", Remote: `"type":"remote"`, Local: `"type":"local"`, Argv: true}}},
	{Name: "cursor", Words: []string{"cursor"},
		Files: []Place{{Paths: []string{".cursor/mcp.json"}, Servers: "mcpServers", Variable: "${env:" + TokenVariable + "}", URLKey: "url"}},
		Hand:  "Cursor may ask once whether the server openab is approved (cursor-agent mcp enable openab)"},
	{Name: "kiro", Words: []string{"kiro"},
		Files: []Place{
			{Paths: []string{".kiro/settings/mcp.json"}, Servers: "mcpServers", Variable: "${" + TokenVariable + "}", URLKey: "url"},
			{Paths: []string{".kiro/agents/*.json"}, Each: true, Servers: "mcpServers", Grants: "allowedTools", Variable: "${" + TokenVariable + "}", URLKey: "url"},
		}},
}

// profileNamed finds a row; anything unknown is generic.
func profileNamed(name string) *Profile {
	for i := range Profiles {
		if Profiles[i].Name == name {
			return &Profiles[i]
		}
	}
	return &Profiles[0]
}

// profileOf is the profile that holds: the one that the operator chose, else what the agent calls itself, else its command, else generic.
func profileOf(configured, agentName string, command []string) *Profile {
	if configured != "" && configured != "auto" {
		return profileNamed(configured)
	}
	if p := profileIn(words(agentName)); p != nil {
		return p
	}
	for _, argument := range command {
		if p := profileIn(words(telling(argument))); p != nil {
			return p
		}
	}
	return &Profiles[0]
}

func profileIn(words []string) *Profile {
	for i := range Profiles {
		if slices.ContainsFunc(Profiles[i].Words, func(w string) bool { return slices.Contains(words, w) }) {
			return &Profiles[i]
		}
	}
	return nil
}

// words cuts a name into its words, in lower case: "@agentclientprotocol/claude-agent-acp" has five.
func words(name string) []string {
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}

// telling is the part of an argument that names a program: of a path its last element, or the package's folder when that is called like
// any other program (…/claude-agent-acp/dist/index.js). Folders say whose home it is, not what runs.
func telling(argument string) string {
	argument = strings.TrimRight(argument, "/")
	if !strings.Contains(argument, "/") || strings.HasPrefix(argument, "@") || strings.HasPrefix(argument, "-") {
		return argument
	}
	dir, base := path.Split(argument)
	for slices.Contains([]string{"index", "main", "cli", "acp", "dist", "bin", "lib", "src", "build"}, strings.TrimSuffix(base, path.Ext(base))) && dir != "" {
		dir, base = path.Split(strings.TrimRight(dir, "/"))
	}
	return base
}
