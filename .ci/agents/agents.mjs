// Each agent: the config of the pod that works (docs/agents.md shows the same), the files that it needs in its home, where its
// programs are. The address of the model and the key that is none stand where a real one's would.
import {join} from 'node:path';
import {setTimeout as pause} from 'node:timers/promises';

const installed = (name, ...parts) => join(process.env.AGENTS, name, 'node_modules', ...parts);

export const agents = {
  codex: {
    command: ['codex-acp'],
    path: [installed('codex', '.bin')],
    config: () => `
env = { MODEL_KEY = "none", INITIAL_AGENT_MODE = "read-only" }
`,
    files: (model) => ({
      '.codex/config.toml': `
model = "none"
model_provider = "test"
check_for_update_on_startup = false
[model_providers.test]
name = "Test"
base_url = "${model}/v1"
wire_api = "responses"
env_key = "MODEL_KEY"
request_max_retries = 0
stream_max_retries = 0
[analytics]
enabled = false
`}),
  },
  gemini: {
    command: ['gemini', '--acp'],
    path: [installed('gemini', '.bin')],
    config: (model) => `
env = { GEMINI_API_KEY = "none", GEMINI_MODEL = "gemini-2.5-flash", GOOGLE_GEMINI_BASE_URL = "${model}", GEMINI_CLI_TRUST_WORKSPACE = "true" }
`,
    files: () => ({
      '.gemini/settings.json': {
        security: {auth: {selectedType: 'gemini-api-key'}}, privacy: {usageStatisticsEnabled: false},
        general: {enableAutoUpdate: false, enableAutoUpdateNotification: false}, telemetry: {enabled: false},
      },
    }),
    // Gemini writes a session into a file that is named by the minute, and empties it when that session is loaded in the same minute.
    settle: () => pause(61_000 - Date.now() % 60_000),
  },
  claude: {
    command: ['claude-agent-acp'],
    path: [installed('claude', '.bin')],
    config: (model) => `
env = { ANTHROPIC_BASE_URL = "${model}", ANTHROPIC_API_KEY = "none", ANTHROPIC_MODEL = "claude-none", ENABLE_TOOL_SEARCH = "false", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC = "1", IS_SANDBOX = "1" }
`,
    files: () => ({
      '.claude.json': {hasCompletedOnboarding: true},
      '.claude/settings.json': {permissions: {defaultMode: 'default'}},
    }),
  },
  opencode: {
    forgets: 'an error', // its answer does not tell a lost conversation from a passing failure
    command: ['opencode', 'acp'],
    path: [installed('opencode', 'opencode-linux-x64', 'bin')],
    config: () => `
env = { OPENCODE_DISABLE_MODELS_FETCH = "1", OPENCODE_DISABLE_AUTOUPDATE = "1" }
`,
    files: (model) => ({
      '.config/opencode/opencode.json': {
        $schema: 'https://opencode.ai/config.json', autoupdate: false, share: 'disabled', model: 'test/none', small_model: 'test/none',
        permission: {'openab_execute_capability': 'ask'},
        provider: {test: {
          npm: '@ai-sdk/openai-compatible', name: 'Test', options: {baseURL: `${model}/v1`, apiKey: 'none'},
          models: {none: {name: 'None', tool_call: true, limit: {context: 100000, output: 4096}}},
        }},
      },
    }),
  },
};
for (const [name, agent] of Object.entries(agents)) agent.name = name;
