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

test('the generator refuses a name that TypeScript cannot declare, and one that is described nowhere', async () => {
  const { generate } = await import('../tools/generate-types.mjs');
  const document = (name, schemas) => ({
    methods: [{ name: 'a/b', summary: '', params: [], result: { schema: { $ref: `#/components/schemas/${name}` } } }],
    components: { schemas, errors: {} },
  });
  assert.throws(() => generate(document('a.BJson', { 'a.BJson': {} })), /a\.BJson .* cannot declare/);
  assert.throws(() => generate(document('BJson', {})), /BJson is used and not described/);
});

test('every module for apps has types, and they name each of its exports', () => {
  for (const module of ['client', 'supervisor', 'agent', 'main-ipc']) {
    const types = ['errors', module].map((name) => fs.readFileSync(path.join(FOLDER, `${name}.d.ts`), 'utf8')).join();
    for (const name of Object.keys(require(path.join(FOLDER, `${module}.js`)))) {
      assert.match(types, new RegExp(`export (class|const|function) ${name}\\b`), `${module}.d.ts: ${name}`);
    }
  }
});
