// The Electron app of the demo: drives one sidecar per device with the client that ships in electron-snippets/.
// Reads {"id", "device", "method", "params"} lines, answers {"id", "result"} or {"id", "error"} lines.
import { createInterface } from 'node:readline';
import { SidecarClient } from '../../electron-snippets/client.js';

const environments = JSON.parse(process.env.DEMO_DEVICES);
const command = JSON.parse(process.env.DEMO_COMMAND);

const clients = Object.fromEntries(
  Object.entries(environments).map(([name, env]) => [name, new SidecarClient({ command, env })]),
);
await Promise.all(Object.values(clients).map((client) => client.start()));

const pending = new Set();
for await (const line of createInterface({ input: process.stdin })) {
  const { id, device, method, params } = JSON.parse(line);
  const answer = clients[device]
    .request(method, params)
    .then((result) => ({ id, result }))
    .catch((error) => ({ id, error: error.message }))
    .then((message) => process.stdout.write(`${JSON.stringify(message)}\n`));
  pending.add(answer);
  answer.finally(() => pending.delete(answer));
}
await Promise.allSettled(pending);
await Promise.all(Object.values(clients).map((client) => client.close()));
