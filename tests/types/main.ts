// A main process that uses every module, as electron-snippets/README.md shows it. Compiled by `make lint`, never run.
import { SidecarClient, SidecarError, findSidecar } from '../../electron-snippets/client';
import { SidecarSupervisor, type Snapshot } from '../../electron-snippets/supervisor';
import { createMemory } from '../../electron-snippets/agent';
import { registerMemoryIpc, stopBeforeQuit, type AppLike, type IpcMainLike, type WindowLike } from '../../electron-snippets/main-ipc';

export async function callOnce(setting: string): Promise<string> {
  const [executable, ...args]: string[] = findSidecar({ setting });
  const client = new SidecarClient({ command: [executable!, ...args] });
  await client.start({ handshake: true });
  client.on('memory/changed', ({ nextOffset }: { nextOffset: number }) => nextOffset);
  try {
    await client.request('memory/update', { userMessage: '你好', aiResponse: '你好！' });
    await client.request('daily/record', { turns: [{ role: 'user', content: '你好' }], summary: { topic: '问好' } });
    await client.request('recall/search', { query: '问好', weights: { keyword: 1, semantic: 0 } });
    const { refusals } = await client.request('archive/import', { path: '/tmp/a', dryRun: true });
    const { events } = await client.request('sync/quarantine', {});
    return [...refusals.map((one) => one.item), ...events.map((one) => one.eventId)].join();
  } catch (error) {
    if (error instanceof SidecarError && error.kind === 'sidecar_exited') return error.hint;
    // @ts-expect-error: there is no such kind
    if (error instanceof SidecarError && error.kind === 'no_such_kind') return '';
    throw error;
  } finally {
    await client.close();
  }
}

export async function wrongCalls(client: SidecarClient): Promise<void> {
  // @ts-expect-error: there is no such method
  await client.request('memory/lode');
  // @ts-expect-error: aiResponse is missing
  await client.request('memory/update', { userMessage: 'a' });
  // @ts-expect-error: a role that no turn has
  await client.request('daily/record', { turns: [{ role: 'nobody', content: 'a' }] });
}

export async function runApp(app: AppLike, ipcMain: IpcMainLike, getWindows: () => WindowLike[]): Promise<string> {
  const supervisor = new SidecarSupervisor({ find: () => findSidecar(), initialize: { locale: 'zh-CN' } });
  supervisor.on('state', (snapshot: Snapshot) => snapshot.message);
  const memory = createMemory({ supervisor, log: (line) => line.length });
  void supervisor.start();
  const remove: () => void = registerMemoryIpc({ ipcMain, supervisor, getWindows, allowedOrigins: ['app://main'] });
  stopBeforeQuit({ app, supervisor, memory });
  const prompt: string = await memory.buildSystemPrompt('You are an assistant.', { maxChars: 2_000 });
  const answer = await memory.updateAIMemory('question', 'answer', { sessionId: 'ses_1' });
  if (answer.queued) remove();
  if (!answer.recorded && !answer.queued) return answer.reason ?? '';
  return prompt;
}
