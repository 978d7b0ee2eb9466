'use strict';

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { COMMAND, makeHome } = require('./support/world.js');

const FOLDER = path.join(__dirname, '..');

function openrpc(t) {
  const [file, ...args] = COMMAND;
  return execFileSync(file, [...args, '--openrpc'], { env: makeHome().env, encoding: 'utf8' });
}

test('types.d.ts is what the sidecar describes', async (t) => {
  const { generate } = await import('../tools/generate-types.mjs');
  const current = fs.readFileSync(path.join(FOLDER, 'types.d.ts'), 'utf8').replaceAll('\r\n', '\n');
  assert.equal(current, generate(JSON.parse(openrpc(t))), 'run: npm run types');
});

test('the generator reads its standard input, or runs a command', (t) => {
  const tool = path.join(FOLDER, 'tools', 'generate-types.mjs');
  const options = { encoding: 'utf8', env: makeHome().env };
  const piped = execFileSync(process.execPath, [tool], { ...options, input: openrpc(t) });
  const asked = execFileSync(process.execPath, [tool, ...COMMAND, '--openrpc'], options);
  assert.match(piped, /'memory\/load': \{/);
  assert.equal(asked, piped);
});
