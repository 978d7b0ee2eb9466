'use strict';

/**
 * What the modules say to a person or a model while the sidecar cannot, in the language of the app's locale. The sidecar
 * itself answers in the language of the memory file.
 */

function template({ title, sections, empty }) {
  const parts = sections.map(([heading, subsections]) =>
    subsections.length > 0
      ? `## ${heading}\n\n${subsections.map((one) => `### ${one}\n${empty}\n`).join('\n')}`
      : `## ${heading}\n\n${empty}\n`
  );
  return `# ${title}\n\n${parts.join('\n---\n\n')}`;
}

const CHINESE = Object.freeze({
  /** The document a new memory begins with, as the sidecar writes it. */
  template: template({
    title: 'AI 对话记忆',
    sections: [
      ['用户偏好', ['工作习惯', '沟通风格', '技术偏好', '个人情况']],
      ['重要对话记录', []],
      ['常用操作', ['日常任务', '常用命令']],
    ],
    empty: '- （待补充）',
  }),
  promptWithoutMemory: `## 用户记忆（自动加载）

记忆服务暂时不可用，本次对话没有以往的记忆。不要猜测用户以前说过什么；用户问起时，如实说明暂时读不到记忆。
`,
  states: Object.freeze({
    stopped: '记忆服务没有运行',
    starting: '记忆服务正在启动',
    running: '记忆服务运行正常',
    waiting: '记忆服务意外中断，正在自动恢复',
    template: '记忆服务暂时不可用，对话可以照常进行，但不会带上以往的记忆',
    sidecar_not_found: '没有找到记忆服务程序，请检查设置或重新安装应用；对话可以照常进行',
    version_mismatch: '记忆服务与应用的版本不匹配，请更新；对话可以照常进行',
  }),
});

const ENGLISH = Object.freeze({
  template: template({
    title: 'AI Conversation Memory',
    sections: [
      ['User preferences', ['Work habits', 'Communication style', 'Technical preferences', 'About me']],
      ['Important conversations', []],
      ['Common operations', ['Daily tasks', 'Common commands']],
    ],
    empty: '- (to be added)',
  }),
  promptWithoutMemory: `## User memory (loaded automatically)

The memory is not available now, so this conversation knows nothing of earlier ones. Do not guess what the user said before; \
if they ask, say that the memory cannot be read at the moment.
`,
  states: Object.freeze({
    stopped: 'The memory is not running',
    starting: 'The memory is starting',
    running: 'The memory works',
    waiting: 'The memory stopped unexpectedly and is being restarted',
    template: 'The memory is not available; conversations go on, without what was said before',
    sidecar_not_found: 'The memory program was not found: check the settings or reinstall the app; conversations go on',
    version_mismatch: 'The memory and the app have versions that do not fit: update them; conversations go on',
  }),
});

/** The texts for a locale such as `app.getLocale()`; Chinese without one. */
function textsFor(locale) {
  const name = String(locale ?? '').split('.')[0].toLowerCase();
  return ['', 'c', 'posix'].includes(name) || /^zh\b|^zh_/.test(name) ? CHINESE : ENGLISH;
}

module.exports = { CHINESE, ENGLISH, textsFor };
