// A real browser opens the playground, types the line that the page suggests, and the counter of its button moves.
import assert from 'node:assert/strict';
import {join} from 'node:path';
import {after, before, test} from 'node:test';
import {chromium} from 'playwright-core';
import {config, RawClient, startPod} from './pod.mjs';

const keyed = `
[acp]
listen = "127.0.0.1:0"
auth_key = "a.key-for-the-page"
[mcp]
listen = "127.0.0.1:0"
[debug]
listen = "127.0.0.1:0"
`;

let browser;
before(async () => {
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', headless: true,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
});
after(() => browser.close());

async function open(pod, path = '/') {
  const context = await browser.newContext({viewport: {width: 1100, height: 900}});
  const page = await context.newPage();
  const problems = [];
  page.on('pageerror', (error) => problems.push(String(error)));
  page.on('console', (message) => { if (message.type() === 'error') problems.push(message.text()); });
  await page.goto(`http://${pod.public}${path}`);
  return {page, context, problems};
}

test('a line typed into the page makes an agent click a button in that page', {timeout: 120_000}, async () => {
  const pod = await startPod(`[acp]\nlisten = "127.0.0.1:0"\n[mcp]\nlisten = "127.0.0.1:0"\n[debug]\nlisten = "127.0.0.1:0"\n`);
  const {page, context, problems} = await open(pod);
  await page.locator('#state[data-state=connected]').waitFor();
  const count = page.locator('#count');
  assert.equal(await count.textContent(), '0');
  await page.locator('#prompt').fill('/call katashiro.click {"selector":"#bump"}');
  await page.locator('#send').click();
  await page.locator('#count', {hasText: /^1$/}).waitFor();
  await page.locator('.message.agent', {hasText: 'clicked #bump'}).waitFor();
  await page.screenshot({path: join(process.env.ARTIFACTS, 'playground.png'), fullPage: true});

  await page.locator('#send:not([disabled])').waitFor();
  await page.locator('#prompt').fill('/call katashiro.type {"selector":"#note","text":"<img src=x onerror=alert(1)>"}\n/call katashiro.click {"selector":"#add"}\n/call katashiro.screenshot');
  await page.locator('#send').click();
  await page.locator('#items li', {hasText: '<img src=x onerror=alert(1)>'}).waitFor(); // text stays text
  await page.locator('.message.agent', {hasText: '[image image/jpeg'}).waitFor();
  assert.equal(await page.locator('#items img, img[src=x]').count(), 0);

  await page.locator('#send:not([disabled])').waitFor();
  await page.locator('#prompt').fill('<img src=x onerror=alert(1)>\n/call katashiro.read_dom {"selector":"#items"}\n/call katashiro.navigate {"url":"#list"}');
  await page.locator('#send').click();
  await page.locator('.message.agent', {hasText: 'echo: <img src=x onerror=alert(1)>'}).waitFor();
  await page.locator('.message.agent', {hasText: 'now at #list'}).waitFor();
  await page.locator('#list.here').waitFor();
  assert.equal(await page.locator('img[src=x]').count(), 0); // neither in the chat nor in the log of frames

  await page.locator('#send:not([disabled])').waitFor();
  await page.locator('#prompt').fill('/ask');
  await page.locator('#send').click();
  await page.locator('.choice.allow').click();
  await page.locator('.message.agent', {hasText: 'choice: allow'}).waitFor();

  await page.locator('#send:not([disabled])').waitFor();
  await page.locator('#prompt').fill('/ask');
  await page.locator('#send').click();
  await page.locator('.choice.allow:enabled').waitFor();
  await page.locator('#cancel').click();
  await page.locator('.message.note', {hasText: 'The question was taken back.'}).waitFor();
  await page.locator('.message.note', {hasText: 'The turn ended: cancelled'}).waitFor();

  // The same on a phone, in the dark: nothing is wider than the screen.
  await page.emulateMedia({colorScheme: 'dark'});
  await page.setViewportSize({width: 375, height: 740});
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), 'the page is wider than a phone');
  await page.screenshot({path: join(process.env.ARTIFACTS, 'playground-phone-dark.png'), fullPage: true});

  // A reload is a lost socket: the tab finds its session again.
  await page.reload();
  await page.locator('.message.note', {hasText: 'Back in the same session.'}).waitFor();
  await page.locator('#prompt').fill('/call katashiro.click {"selector":"#bump"}');
  await page.locator('#send:not([disabled])').click();
  await page.locator('#count', {hasText: /^1$/}).waitFor();
  assert.deepEqual(problems, []);

  const debug = await context.newPage();
  const wrong = [];
  debug.on('pageerror', (error) => wrong.push(String(error)));
  debug.on('console', (message) => { if (message.type() === 'error') wrong.push(message.text()); });
  await debug.goto(`http://${pod.debug}/debug/`);
  await debug.getByText(/sess-[0-9a-f]{8}/).first().waitFor();
  await debug.screenshot({path: join(process.env.ARTIFACTS, 'debug.png'), fullPage: true});
  assert.deepEqual(wrong, []);
  await context.close();
  await pod.stop();
});

test('a page whose pod has gone comes back when there is one again', {timeout: 120_000}, async () => {
  const toml = (address) => `[acp]\nlisten = "${address}"\n[mcp]\nlisten = "127.0.0.1:0"\n[debug]\nlisten = "127.0.0.1:0"\n`;
  const former = await startPod(toml('127.0.0.1:0'));
  const {page, context} = await open(former);
  await page.locator('#state[data-state=connected]').waitFor();
  await former.stop();
  await page.locator('#state[data-state=lost], #state[data-state=connecting]').waitFor();
  assert.ok(await page.locator('#send').isDisabled());
  const pod = await startPod(toml(former.public));
  await page.locator('#state[data-state=connected]').waitFor();
  await page.locator('.message.note', {hasText: 'The former session is gone'}).waitFor();
  await page.locator('#prompt').fill('/call katashiro.click {"selector":"#bump"}');
  await page.locator('#send:not([disabled])').click();
  await page.locator('#count', {hasText: /^1$/}).waitFor();
  await context.close();
  await pod.stop();
});

test('a page whose session was suspended goes on with the next line', {timeout: 120_000}, async () => {
  const pod = await startPod(`${config}[agent]\nmax_sessions = 1\n`);
  const {page, context} = await open(pod);
  await page.locator('#state[data-state=connected]').waitFor();
  const other = await RawClient.connect(pod, 'A');
  await other.request('initialize', {protocolVersion: 1});
  await other.request('session/new', {cwd: '/', mcpServers: []});
  await page.locator('.message.note', {hasText: 'The session was suspended'}).waitFor();
  await page.locator('#prompt').fill('/call katashiro.click {"selector":"#bump"}');
  await page.locator('#send').click();
  await page.locator('#count', {hasText: /^1$/}).waitFor();
  await context.close();
  other.close();
  await pod.stop();
});

test('the debug page takes what peers call themselves as text', {timeout: 120_000}, async () => {
  const pod = await startPod();
  const hostile = '<img src=x onerror=alert(1)>\n\u001b[31m\u202e';
  const client = await RawClient.connect(pod, 'A');
  await client.request('initialize', {protocolVersion: 1, clientInfo: {name: hostile, version: hostile}});
  await client.request('session/new', {cwd: '/', mcpServers: [client.declaration]});
  const context = await browser.newContext(), page = await context.newPage();
  await page.goto(`http://${pod.debug}/debug/`);
  await page.getByText('<img src=x').first().waitFor();
  assert.equal(await page.locator('img[src=x]').count(), 0);
  assert.doesNotMatch(await page.locator('body').innerText(), /[\u001b\u202e]/);
  await context.close();
  client.close();
  await pod.stop();
});

test('a page of another origin gets no socket and no frame of the page', {timeout: 120_000}, async () => {
  const pod = await startPod(), other = await startPod();
  const {page, context} = await open(other, '/healthz');
  const outcome = await page.evaluate((address) => new Promise((resolve) => {
    const socket = new WebSocket(`ws://${address}/acp`, ['acp.v1']);
    socket.onopen = () => resolve('open');
    socket.onclose = () => resolve('closed');
  }), pod.public);
  assert.equal(outcome, 'closed');
  await context.close();
  await Promise.all([pod.stop(), other.stop()]);
});

test('a pod with a key is asked for it by the page, and a wrong one is told', {timeout: 120_000}, async () => {
  const pod = await startPod(keyed);
  const {page, context} = await open(pod);
  await page.locator('#key').fill('wrong');
  await page.locator('#key-form button').click();
  await page.locator('#key-hint', {hasText: 'not accepted'}).waitFor();
  await page.locator('#key').fill('a.key-for-the-page');
  await page.locator('#key-form button').click();
  await page.locator('#state[data-state=connected]').waitFor();
  await context.close();
  await pod.stop();
});
