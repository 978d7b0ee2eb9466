'use strict';

/**
 * What a page sees of the memory: `window.xiaobaiMemory`. Runs in a sandboxed preload, so it imports nothing but electron.
 *
 * Nothing generic goes through: every function has its channel, `ipcRenderer` is not exposed, and a listener gets the
 * payload without the event (whose `sender` would be a way out).
 */

const { contextBridge, ipcRenderer } = require('electron');

const PREFIX = 'xiaobai-memory:';
const CALLS = [
  ...['state', 'retry', 'load', 'status', 'sync', 'account', 'sendCode', 'verifyCode', 'login', 'logout'],
  ...['facts', 'reviewFacts', 'explainFact', 'confirmFact', 'rejectFact', 'retractFact'],
];
const EVENTS = ['state-changed', 'changed', 'sync-changed', 'progress', 'auth-changed', 'token-needed'];

const calls = Object.fromEntries(CALLS.map((name) => [name, (params) => ipcRenderer.invoke(PREFIX + name, params)]));

/** Listen to one of EVENTS; returns a function that stops listening. */
function on(name, listener) {
  if (!EVENTS.includes(name)) throw new Error(`there is no event ${String(name)}; known: ${EVENTS.join(', ')}`);
  if (typeof listener !== 'function') throw new TypeError('listener must be a function');
  const receive = (_event, payload) => listener(payload);
  ipcRenderer.on(PREFIX + name, receive);
  return () => ipcRenderer.removeListener(PREFIX + name, receive);
}

contextBridge.exposeInMainWorld('xiaobaiMemory', { ...calls, on });
