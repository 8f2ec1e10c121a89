// MCP's own conformance suite against the built pod: its facade as it is, with a session's token and without one; and the tools of a
// fixture behind it, through a shim over execute_capability and as direct tools.
import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import {mkdtemp, readdir, readFile, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {after, before, describe, test} from 'node:test';
import {session, start, withFixture} from './pod.mjs';
import {addHeader, shim} from './proxies.mjs';

const v1 = '2025-06-18', v2 = '2025-11-25', v3 = '2026-07-28';
const suite = join(import.meta.dirname, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
const expected = JSON.parse(await readFile(join(import.meta.dirname, 'server-expected.json'), 'utf8'));

const protocol = {
  'server-initialize': [v1, v2], ping: [v1, v2], 'tools-list': [v1, v2, v3], 'dns-rebinding-protection': [v2, v3],
  'server-sse-multiple-streams': [v3], 'http-header-validation': [v3], caching: [v3], 'server-stateless': [v3],
};
const content = {
  'tools-call-simple-text': [v1, v2, v3], 'tools-call-image': [v1, v2, v3], 'tools-call-audio': [v1, v2, v3], 'tools-call-embedded-resource': [v1, v2, v3],
  'tools-call-mixed-content': [v1, v2, v3], 'tools-call-error': [v1, v2, v3], 'tools-call-with-progress': [v1, v2, v3], 'tools-call-with-logging': [v1, v2],
  'tools-call-sampling': [v2], 'tools-call-elicitation': [v1, v2], 'elicitation-sep1034-defaults': [v2], 'elicitation-sep1330-enums': [v2],
  'json-schema-2020-12': [v2, v3], 'tools-list': [v2, v3], 'server-stateless': [v3],
};
// What is asked in the stateless version: the suite leaves many questions unanswered, so each scenario has a session and a fixture of its own.
const asking = {
  'input-required-result-request-state': [v3], 'input-required-result-multi-round': [v3], 'input-required-result-missing-input-response': [v3],
  'input-required-result-result-type': [v3], 'input-required-result-unsupported-methods': [v3], 'input-required-result-tampered-state': [v3],
  'input-required-result-validate-input': [v3],
};
const names = ['test_simple_text', 'test_image_content', 'test_audio_content', 'test_embedded_resource', 'test_multiple_content_types', 'test_error_handling',
  'test_tool_with_logging', 'test_logging_tool', 'test_tool_with_progress', 'test_sampling', 'test_elicitation', 'test_elicitation_sep1034_defaults',
  'test_elicitation_sep1330_enums', 'json_schema_2020_12_tool', 'test_streaming_elicitation', 'test_missing_capability'];

// run gives the checks of one scenario.
async function run(url, scenario, version) {
  const out = await mkdtemp(join(tmpdir(), 'conformance-'));
  const child = spawn(process.execPath, [suite, 'server', '--url', url, '--scenario', scenario, '--spec-version', version, '-o', out], {stdio: ['ignore', 'pipe', 'pipe']});
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => { said += data; });
  await new Promise((resolve) => child.on('close', resolve));
  const results = await readdir(out);
  assert.equal(results.length, 1, `the suite gave no result:\n${said}`);
  const checks = JSON.parse(await readFile(join(out, results[0], 'checks.json'), 'utf8'));
  await rm(out, {recursive: true, force: true});
  return checks;
}

const report = [];

// judge has every check pass but those that are expected to fail; one of these that passes is no longer expected to.
async function judge(where, url, scenario, version) {
  const checks = await run(url, scenario, version);
  const failed = checks.filter(({status}) => status === 'FAILURE' || status === 'WARNING').map(({id, errorMessage}) => ({id, errorMessage}));
  const passed = checks.filter(({status}) => status === 'SUCCESS').length;
  const known = expected.filter((e) => e.where.includes(where) && e.scenario === scenario);
  report.push({where, scenario, version, passed, failed: failed.map(({id}) => id)});
  assert.ok(passed + failed.length > 0, 'nothing was checked');
  assert.deepEqual(failed.filter(({id}) => !known.some(({checks}) => checks.includes(id))), [], 'checks failed');
  for (const {checks} of known) for (const id of checks) assert.ok(failed.some((f) => f.id === id), `${id} is expected to fail, and does not`);
}

// What a server says without naming a call belongs to the one call that is open at it, so scenarios that share a fixture run one at a time.
function suites(where, scenarios, url, concurrency = 2) {
  describe(where, {concurrency}, () => {
    for (const [scenario, versions] of Object.entries(scenarios)) for (const version of versions) test(`${scenario} ${version}`, async () => judge(where, await url(), scenario, version));
  });
}

describe('the facade alone, without a token', () => {
  let pod;
  before(async () => { pod = await start('facade'); });
  after(() => pod.stop());
  suites('anonymous', Object.fromEntries(Object.entries(protocol).map(([name, versions]) => [name, versions.slice(-1)])), () => `http://${pod.facade}/mcp`);
});

describe('the facade of a pod, with a token', () => {
  let pod, direct, client, directClient;
  const proxies = {};
  before(async () => {
    pod = await start('serve', {servers: withFixture});
    client = await session(pod);
    proxies.token = await addHeader(pod.facade, client.token);
    proxies.shim = await shim(pod.facade, client.token);
    direct = await start('serve', {servers: withFixture, mcp: `direct_tools = ${JSON.stringify(names)}`});
    directClient = await session(direct);
    proxies.direct = await addHeader(direct.facade, directClient.token);
  });
  after(async () => {
    for (const proxy of Object.values(proxies)) await proxy.stop();
    client.end();
    directClient.end();
    await pod.stop();
    await direct.stop();
  });
  suites('token', {...protocol, 'logging-set-level': [v1, v2]}, () => proxies.token.url);
  suites('shim', content, () => proxies.shim.url, 1);
  suites('direct', Object.fromEntries(Object.entries(content).map(([name, versions]) => [name, versions.filter((v) => v !== v1)])), () => proxies.direct.url, 1);
});

describe('questions that are results', () => {
  let pod;
  const opened = [];
  before(async () => { pod = await start('serve', {servers: {fixture: {...withFixture.fixture, isolation: 'session'}}}); });
  after(async () => {
    for (const {client, proxy} of opened) { await proxy.stop(); client.end(); }
    await pod.stop();
  });
  suites('shim', asking, async () => {
    const client = await session(pod);
    const proxy = await shim(pod.facade, client.token);
    opened.push({client, proxy});
    await fetch(proxy.url, {method: 'POST', headers: {'Content-Type': 'application/json'}, body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'}).then((r) => r.text()); // the session's own fixture starts
    return proxy.url;
  });
});

after(async () => {
  if (process.env.ARTIFACTS) await writeFile(join(process.env.ARTIFACTS, 'conformance-server.json'), JSON.stringify(report, null, 1));
});
