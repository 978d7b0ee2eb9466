// An Electron app's client in front of the real sidecar: carries out the requests on stdin, prints their answers.
// Usage: node context_peer.mjs COMMAND ARGUMENT... < [{"method": …, "params": …}, …]
import { createRequire } from 'node:module';
import { text } from 'node:stream/consumers';

const { SidecarClient } = createRequire(import.meta.url)('../../electron-snippets/client.js');
const requests = JSON.parse(await text(process.stdin));
const client = new SidecarClient({ command: process.argv.slice(2) });
await client.start();
const answers = [];
for (const { method, params } of requests) answers.push(await client.request(method, params));
await client.close();
console.log(JSON.stringify(answers));
