// A client that nobody wrote for us: vscode-jsonrpc as npm has it, with its own framing, in front of the real sidecar.
// Usage: node vscode_peer.mjs COMMAND ARGUMENT...; prints what it saw as one JSON object.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';

const require = createRequire(new URL('../cloud/package.json', import.meta.url));
const rpc = require('vscode-jsonrpc/node');

const [command, ...args] = process.argv.slice(2);
const sidecar = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
const left = new Promise((resolve) => sidecar.on('exit', (code) => resolve(code)));
const noise = [];
const reader = new rpc.StreamMessageReader(sidecar.stdout);
reader.onError((error) => noise.push(String(error)));
const connection = rpc.createMessageConnection(reader, new rpc.StreamMessageWriter(sidecar.stdin));
connection.onError((error) => noise.push(String(error)));
const changed = new Promise((resolve) => connection.onNotification('memory/changed', resolve));
connection.listen();

const failed = (promise) => promise.then(
  () => 'no error',
  ({ code, data }) => ({ code, kind: data?.kind }),
);
const large = '记'.repeat(60_000);

const seen = { noise };
seen.hello = await connection.sendRequest('initialize', { protocolVersion: 1, clientInfo: { name: 'vscode', version: '1' } });
seen.update = await connection.sendRequest('memory/update', { userMessage: '你好 𠮷', aiResponse: large });
seen.changed = await changed;
const many = Array.from({ length: 40 }, (_, n) =>
  connection.sendRequest('memory/update', { userMessage: `问题 ${n}`, aiResponse: '好' }));
seen.many = (await Promise.all(many)).map((answer) => answer.eventId);
seen.document = (await connection.sendRequest('memory/load')).document;
seen.unknown = await failed(connection.sendRequest('memory/nothing'));
seen.bad = await failed(connection.sendRequest('memory/update', { userMessage: 1, aiResponse: '好' }));
const cancelling = new rpc.CancellationTokenSource();
const cancelled = connection.sendRequest('events/verify', {}, cancelling.token);
cancelling.cancel();
seen.cancelled = await cancelled.then(() => 'answered before', (error) => error.code);
seen.alive = (await connection.sendRequest('sync/status')).sidecar;
connection.end();
seen.code = await left;
console.log(JSON.stringify(seen));
