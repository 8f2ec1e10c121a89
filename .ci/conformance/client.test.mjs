// MCP's own conformance suite for clients against the HTTP provider of the built pod: the suite serves, and each scenario's client is
// `acpod mcp …` (client.mjs). What is left out, and what is expected to fail, stands in client-expected.json with its reason.
import assert from 'node:assert/strict';
import {spawn, spawnSync} from 'node:child_process';
import {mkdtemp, readdir, readFile, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {after, describe, test} from 'node:test';

const v1 = '2025-06-18', v2 = '2025-11-25', v3 = '2026-07-28';
const suite = join(import.meta.dirname, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
const client = join(import.meta.dirname, 'client.mjs');
const {failures, left_out: leftOut} = JSON.parse(await readFile(join(import.meta.dirname, 'client-expected.json'), 'utf8'));
const report = [];

const scenarios = {
  initialize: [v1, v2], tools_call: [v1, v2, v3], 'sse-retry': [v2], 'json-schema-2020-12-preservation': [v2, v3], 'json-schema-ref-no-deref': [v3],
  'request-metadata': [v3], 'http-standard-headers': [v3], 'http-custom-headers': [v3], 'http-invalid-tool-headers': [v3],
  'elicitation-sep1034-client-defaults': [v2], 'sep-2322-client-request-state': [v3],
};

// run gives the checks of one scenario and what its client said.
async function run(scenario, version) {
  const out = await mkdtemp(join(tmpdir(), 'conformance-'));
  try {
    const command = `${process.execPath} ${client}`;
    const child = spawn(process.execPath, [suite, 'client', '--command', command, '--scenario', scenario, '--spec-version', version, '-o', out, '--timeout', '60000'], {stdio: ['ignore', 'pipe', 'pipe']});
    let said = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => { said += data; });
    await new Promise((resolve) => child.on('close', resolve));
    const results = await readdir(out);
    assert.equal(results.length, 1, `the suite gave no result:\n${said}`);
    const read = (name) => readFile(join(out, results[0], name), 'utf8');
    return {checks: JSON.parse(await read('checks.json')), said: await read('stdout.txt') + await read('stderr.txt')};
  } finally {
    await rm(out, {recursive: true, force: true});
  }
}

describe('the HTTP provider', {concurrency: 2}, () => {
  for (const [scenario, versions] of Object.entries(scenarios)) for (const version of versions) test(`${scenario} ${version}`, async () => {
    const {checks, said} = await run(scenario, version);
    const failed = checks.filter(({status}) => status === 'FAILURE' || status === 'WARNING').map(({id, errorMessage}) => ({id, errorMessage}));
    const passed = checks.filter(({status}) => status === 'SUCCESS').length;
    const known = failures.filter((e) => e.scenario === scenario).flatMap((e) => e.checks);
    report.push({scenario, version, passed, failed: failed.map(({id}) => id)});
    assert.ok(passed + failed.length > 0, `nothing was checked:\n${said}`);
    assert.deepEqual(failed.filter(({id}) => !known.includes(id)), [], `checks failed:\n${said}`);
    for (const id of known) assert.ok(failed.some((f) => f.id === id), `${id} is expected to fail, and does not`);
  });
});

test('each scenario of the suite for clients is run or left out for a reason', () => {
  const {stdout} = spawnSync(process.execPath, [suite, 'list'], {encoding: 'utf8'});
  const [, listed] = stdout.match(/^Client scenarios[^\n]*\n((?:  - .*\n)+)/m);
  const names = [...listed.matchAll(/^  - (\S+)/gm)].map(([, name]) => name);
  assert.ok(names.length >= 40, `the suite lists ${names.length} scenarios`);
  assert.deepEqual(names.filter((name) => !scenarios[name] && !leftOut.some(({begin}) => name.startsWith(begin))), []);
});

after(async () => {
  if (process.env.ARTIFACTS) await writeFile(join(process.env.ARTIFACTS, 'conformance-client.json'), JSON.stringify(report, null, 1));
});
