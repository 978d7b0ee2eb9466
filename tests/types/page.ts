// A page that uses window.xiaobaiMemory: compiled with the DOM and without the types of Node. Never run.
import type {} from '../../electron-snippets/preload';

export async function show(): Promise<string> {
  const stop = window.xiaobaiMemory.on('state-changed', ({ state, message }) => `${state} ${message}`);
  window.xiaobaiMemory.on('progress', ({ value }) => value.done / value.total);
  // @ts-expect-error: there is no such event
  window.xiaobaiMemory.on('nothing', () => {});
  const answer = await window.xiaobaiMemory.load({ maxChars: 20_000 });
  stop();
  if (!answer.ok) return `${answer.error.message} ${answer.error.hint}`;
  // @ts-expect-error: a page cannot record
  window.xiaobaiMemory.update;
  const login = await window.xiaobaiMemory.verifyCode({ phone: '138 0013 8000', code: '123456' });
  return login.ok ? (login.value.account.label ?? '') : login.error.kind;
}
