'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { findSidecar } = require('../client.js');
const { makeHome } = require('./support/world.js');

function program(...parts) {
  const file = path.join(...parts);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, '#!/bin/sh\n', { mode: 0o755 });
  return file;
}

test('the setting comes first, then the bundle, then PATH', (t) => {
  const { folder } = makeHome();
  const set = program(folder, 'set', 'my-sidecar');
  const bundled = program(folder, 'resources', 'xiaobai-memory', 'xiaobai-memory');
  const onPath = program(folder, 'bin', 'xiaobai-memory');
  const env = { HOME: folder, PATH: ['relative', '', path.dirname(onPath)].join(path.delimiter) };
  const where = { env, resourcesPath: path.join(folder, 'resources'), platform: 'linux' };
  assert.deepEqual(findSidecar({ ...where, setting: set }), [set, 'serve']);
  assert.deepEqual(findSidecar({ ...where, setting: ['python', '-m', 'x'] }), ['python', '-m', 'x']);
  assert.deepEqual(findSidecar(where), [bundled, 'serve']);
  assert.deepEqual(findSidecar({ env, platform: 'linux' }), [onPath, 'serve']);
});

test('a program installed for one user is found without PATH', (t) => {
  const { folder } = makeHome();
  const file = program(folder, '.local', 'bin', 'xiaobai-memory');
  assert.deepEqual(findSidecar({ env: { HOME: folder, PATH: '' }, platform: 'linux' }), [file, 'serve']);
});

test('on Windows Path may be spelled so, and the program has its ending', (t) => {
  const { folder } = makeHome();
  const file = program(folder, 'bin', 'xiaobai-memory.exe');
  assert.deepEqual(findSidecar({ env: { Path: path.dirname(file), USERPROFILE: folder }, platform: 'win32' }), [file, 'serve']);
});

test('a setting that points nowhere is an error and not a reason to look elsewhere', (t) => {
  const { folder } = makeHome();
  program(folder, '.local', 'bin', 'xiaobai-memory');
  const find = () => findSidecar({ setting: '/no/such/file', env: { HOME: folder }, platform: 'linux' });
  assert.throws(find, { kind: 'sidecar_not_found', message: /\/no\/such\/file/ });
});

test('nothing found is an error with a hint', (t) => {
  const find = () => findSidecar({ env: { HOME: makeHome().folder, USERPROFILE: '/nowhere', Path: '' }, platform: 'win32' });
  assert.throws(find, (error) => error.kind === 'sidecar_not_found' && error.hint.includes('resources/xiaobai-memory'));
});
