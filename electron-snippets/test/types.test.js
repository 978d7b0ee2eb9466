'use strict';

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');

const { generate } = require('../generate-types.js');
const { METHODS } = require('../preload.js');
const { openrpc } = require('../testing/programs.js');

test('types.d.ts is what the sidecar describes today', () => {
  const described = JSON.parse(execFileSync(...openrpc(), { encoding: 'utf8' }));
  const current = fs.readFileSync(path.join(__dirname, '..', 'types.d.ts'), 'utf8').replaceAll('\r\n', '\n');
  assert.equal(current, generate(described), 'run `npm run types`');
});

test('schemas become the types one would write', () => {
  const text = generate({
    components: {
      schemas: {
        Used: { type: 'object', properties: { a: { type: 'integer' }, 'b-c': { enum: ['x', 'y'] } }, required: ['a'] },
        Unused: { type: 'string' },
      },
      errors: { internal: { code: -32603 } },
    },
    methods: [
      {
        name: 'm/n',
        summary: 'Does.',
        params: [
          { name: 'must', required: true, schema: { anyOf: [{ type: 'string' }, { type: 'null' }] } },
          { name: 'may', required: false, schema: { type: 'array', items: { type: 'object', additionalProperties: { type: 'number' } } } },
        ],
        result: { schema: { $ref: '#/components/schemas/Used' } },
      },
    ],
  });
  assert.match(text, /export type Used = \{ a: number; "b-c"\?: "x" \| "y" \};/);
  assert.match(text, /"m\/n": \{\n {4}params: \{ must: string \| null; may\?: Array<Record<string, number>> \};\n {4}result: Used;/);
  assert.match(text, /internal: -32603;/);
  assert.ok(!text.includes('Unused'));
});

test('what a page may call is named like methods are', () => {
  for (const method of METHODS) assert.match(method, /^[a-z]+\/[a-zA-Z]+$/);
});
