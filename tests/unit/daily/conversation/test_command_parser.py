"""Commands in a message: recall, save, confirm."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync.daily.conversation.command_parser import (
    decide_saving,
    is_confirmation,
    last_save_request,
    parse_command,
    parse_vague_deletion,
)
from sync.daily.conversation.command_phrases import CommandKind
from sync.daily.conversation.extractive_summary import SummaryTurn, count_rounds
from tests.unit.daily.examples import talk

COMMANDS = [
    ("记住这个", CommandKind.SAVE, ""),
    ("save this", CommandKind.SAVE, ""),
    ("Remember this!", CommandKind.SAVE, ""),
    ("好的，记住这个，谢谢", CommandKind.SAVE, ""),
    ("记住这个：端口是 8080", CommandKind.SAVE, "端口是 8080"),
    ("不要保存", CommandKind.SKIP, ""),
    ("这次不保存。", CommandKind.SKIP, ""),
    ("don't save", CommandKind.SKIP, ""),
    ("Don’t save this conversation.", CommandKind.SKIP, ""),
    ("搜索记忆: 火锅", CommandKind.SEARCH, "火锅"),
    ("搜索记忆：API: v2", CommandKind.SEARCH, "API: v2"),
    ("search memory: Hot Pot", CommandKind.SEARCH, "Hot Pot"),
    ("搜索记忆 火锅", CommandKind.SEARCH, "火锅"),
    ("请搜索一下我的记忆 API v2", CommandKind.SEARCH, "API v2"),
    ("Search my memory for Hot Pot", CommandKind.SEARCH, "Hot Pot"),
    ("搜索记忆", CommandKind.SEARCH, ""),
    ("查看今日记忆", CommandKind.SHOW, ""),
    ("查看记忆", CommandKind.SHOW, ""),
    ("today's memory", CommandKind.SHOW, ""),
    ("show today's memory", CommandKind.SHOW, ""),
    ("删除记忆: 2026-01-29 #1", CommandKind.DELETE, "2026-01-29 #1"),
    ("delete memory: hot pot", CommandKind.DELETE, "hot pot"),
    ("忘记我对花生过敏 确认", CommandKind.DELETE, '"我对花生过敏" 确认'),
    ("forget that I have to confirm", CommandKind.DELETE, '"I have to confirm"'),
    ("清理旧记忆", CommandKind.CLEAN, ""),
    ("clean up old memories", CommandKind.CLEAN, ""),
    ("清理旧记忆: 确认", CommandKind.CLEAN, "确认"),
    ("clean up old memories confirm", CommandKind.CLEAN, "confirm"),
    ("记忆设置", CommandKind.SETTINGS, ""),
    ("memory settings", CommandKind.SETTINGS, ""),
    ("记忆设置: recording.auto_save=false", CommandKind.SETTINGS, "recording.auto_save=false"),
    ("这是敏感对话", CommandKind.SENSITIVE, ""),
    ("mark this as sensitive", CommandKind.SENSITIVE, ""),
]

# Other wordings of each command, and sentences that are about something else.
PARAPHRASES = {
    CommandKind.SAVE: (
        "帮我记一下",
        "把这个记下来",
        "记下来",
        "这段对话保存一下",
        "请记住刚才说的",
        "帮我把刚才的内容记住",
        "别忘了这个",
        "note this down",
        "make a note of this",
        "please remember this",
        "keep this in mind",
        "can you save this conversation",
        "记录一下",
        "把这些都记下来吧",
        "Add this to your memory",
    ),
    CommandKind.SKIP: (
        "这个对话不用记",
        "这段不用记了",
        "别记这个",
        "这次就别存了",
        "不用保存",
        "这段话不要记录下来",
        "本次对话无需保存",
        "刚才说的别记",
        "no need to save this",
        "don't record this chat",
        "keep this off the record",
        "please don't keep this",
        "这个就不要记了吧",
        "don't remember this conversation",
        "不要把这段记下来",
        "别把刚才的对话存下来",
        "Do not store this",
    ),
    CommandKind.SENSITIVE: (
        "这段对话比较敏感",
        "This conversation is confidential",
    ),
    CommandKind.SHOW: (
        "今天记了什么",
        "查看昨天的记忆",
        "你今天记住了什么",
        "昨天都记了些什么",
        "打开今天的记忆",
        "看看我的记忆",
        "show yesterday's memory",
        "what did you remember today",
        "show me my memories",
        "显示2026-11-20的记忆",
        "今天你记录了哪些内容",
        "what did you save yesterday?",
    ),
    CommandKind.SETTINGS: (
        "打开记忆设置",
        "查看记忆设置",
        "修改一下记忆设置",
        "open memory settings",
        "show me the memory settings",
        "设置记忆",
    ),
    CommandKind.DELETE: (
        "删除关于火锅的记忆",
        "忘掉火锅那件事",
        "forget about docker",
        "删掉关于离职的所有记录",
        "把关于火锅的记忆都删掉",
        "忘记我前女友的事",
        "delete all memories about hot pot",
        "forget everything about the merger",
        "forget what I said about my salary",
        "清除有关体检的记忆",
        "删除火锅的记忆",
        "remove my memories of Berlin",
        "忘记我对花生过敏",
        "请忘掉我喜欢喝茶",
        "忘了我住在天津吧",
        "别再记住我对花生过敏",
        "请你忘记我用 VS Code",
        "forget that I like tea",
        "Forget the fact that I'm vegan.",
        "can you forget that my daughter is seven",
        "don't remember that I smoke",
        "forget my allergy to peanuts",
        "You can forget about my old address",
    ),
    CommandKind.UNDO: (
        "撤销",
        "undo",
        "撤销刚才的删除",
        "恢复刚才删除的记忆",
        "undo that",
        "把刚才删的恢复",
        "undo the last deletion",
        "restore what I just deleted",
        "撤回",
    ),
    CommandKind.SEARCH: (
        "搜一下关于火锅的记忆",
        "在记忆里找一下数据库",
        "记忆里有没有关于部署的内容",
        "search my memory about docker",
        "what do you remember about my sister?",
        "find the port in my memory",
        "查一下记忆关于火锅",
        "搜索记忆 火锅",
        "找一下数据库的记忆",
    ),
    CommandKind.CLEAN: (
        "清理一下旧记忆",
        "把过期的记忆清掉",
        "clear out old memories",
        "清掉老的记忆",
    ),
}
ORDINARY = (
    "怎么让 Word 不要保存历史",
    "公式很长，不用记，考试会给",
    "这些单词不用记",
    "记一下笔记的技巧有哪些",
    "如何记住这个单词",
    "怎么撤销 git commit",
    "undo the last commit",
    "git undo",
    "撤销上一次提交",
    "撤销合并请求",
    "请帮我写一个不要保存密码的登录页",
    "forget about it",
    "Forget about docker, let's use podman",
    "忘掉密码怎么办",
    "忘记密码的事怎么处理",
    "我忘记密码了",
    "删除关于用户的记录用什么 SQL",
    "删除用户表里的记录",
    "delete all records about users from the table",
    "how do I delete memories on my iPhone",
    "Remember this tomorrow at 5",
    "save this file",
    "save it as a PDF",
    "don't save the file yet",
    "don't store it in a variable",
    "keep it simple",
    "note that the port is 8080",
    "记录一下日志用什么库",
    "今天记了三页笔记",
    "今天有什么新闻",
    "what did you do today",
    "昨天的记忆很模糊",
    "他的记忆很好",
    "查看内存设置",
    "打开设置",
    "memory settings in BIOS",
    "clean up old branches",
    "清理旧记录文件的脚本",
    "这很敏感",
    "this is sensitive to case",
    "皮肤比较敏感",
    "恢复刚才删除的文件",
    "restore the deleted branch",
    "search for memory leaks",
    "find the bug in my memory allocator",
    "what do you remember",
    "我不记得了",
    "你还记得我吗",
    "记不住这个怎么办",
    "别忘了带伞",
    "don't forget the milk",
    "don't forget to test it",
    "把这个函数保存到 utils.py",
    "把这段话翻译一下并记下来单词",
    "保存的时候不要记录日志",
    "the app should never save it",
    "不存在",
    "别存侥幸心理",
    "不记仇",
    "不用了",
    "不要",
    "keep this",
    "记好",
    "撤销这个决定合适吗",
    "忘掉他吧",
    # Sentences with the words of a command that say something else.
    "你忘记我对花生过敏了",
    "别忘了我对花生过敏",
    "不要忘记我喜欢喝茶",
    "我忘了我住在哪一层",
    "我忘记我说过什么了",
    "忘记我密码了怎么办",
    "忘了我的账号",
    "你是不是忘了我对花生过敏",
    "怎么忘掉我前男友",
    "忘记我刚才说的吧，换一个",
    "忘了我吧",
    "忘了我们的约定了吗",
    "他忘记我生日了",
    "别忘记我明天要早起",
    "我差点忘了我妈的生日",
    "忘记密码的页面怎么设计",
    "如何删除关于我的页面",
    "删除我的文件",
    "删除这条记录",
    "删掉我写的第二段",
    "清除浏览记录的方法",
    "清除缓存",
    "撤销上一次编辑怎么按",
    "撤销授权",
    "搜索一下附近的火锅",
    "查一下我的快递",
    "保存按钮放哪里好",
    "把文件保存到桌面",
    "记下来的笔记怎么整理",
    "记忆宫殿是什么",
    "记忆棉枕头推荐",
    "他的记忆力很好",
    "内存记忆体设置",
    "今天记得带伞",
    "昨天的记录在哪个表",
    "不要记录用户的密码",
    "不用记这个公式",
    "敏感词过滤怎么写",
    "皮肤敏感用什么",
    "don't forget that I like tea",
    "did you forget that I like tea?",
    "I forgot that my son is seven",
    "never forget that we ship on Friday",
    "forget that I said that",
    "forget that I asked",
    "I forgot my password",
    "how do I forget my ex",
    "what if I forget that my lease ends in May",
    "forget it, I like tea",
    "don't let me forget that I have a call",
    "we should remember that we use Kafka",
    "remember that the port is 8080",
    "delete my account",
    "delete the memory leak test",
    "erase my whiteboard",
    "undo my last commit",
    "search my inbox for invoices",
    "save my seat",
    "store it in memory",
    "the cache must never remember this",
    "show me my options",
    "clear my calendar",
)


FORGET_AND_PAUSE: dict[CommandKind, tuple[str, ...]] = {
    CommandKind.FORGET_LAST: (
        "forget that",
        "forget what I just said",
        "please delete what I just told you",
        "忘掉刚才的",
        "刚才那条删了",
        "上一句忘掉",
        "前面那句当我没说",
    ),
    CommandKind.PAUSE: (
        "stop remembering things",
        "I don't want you to remember anything",
        "no more memory from now on",
        "以后别记了",
        "先别记",
        "今后不要记录我的任何事情",
    ),
    CommandKind.FACTS: (
        "what do you remember about me?",
        "summarize what you know about me",
        "你记得我什么",
        "我的哪些事你记得",
        "把你记得的我的事列出来",
    ),
}
NOT_ASKED_OF_THE_MEMORY = (
    "delete that",
    "delete the last line",
    "删掉最后一条",
    "scratch that",
    "drop the table from memory",
    "forget where we were",
    "我的密码忘了",
    "我要办的事忘了",
    "你把我忘了",
    "stop saving the file",
    "never store my password in plain text",
    "以后不要存草稿",
    "你知道我什么意思吗",
    "do you know me?",
)


class TestCommands:
    @pytest.mark.parametrize(
        ("kind", "text"), [(kind, text) for kind, texts in FORGET_AND_PAUSE.items() for text in texts]
    )
    def test_wishes_about_the_memory_are_understood_in_free_words(self, kind: CommandKind, text: str) -> None:
        found = parse_command(text)
        assert found is not None
        assert (found.kind, found.argument) == (kind, "")

    @pytest.mark.parametrize("text", NOT_ASKED_OF_THE_MEMORY)
    def test_the_same_words_about_something_else_are_none(self, text: str) -> None:
        assert parse_command(text) is None

    @pytest.mark.parametrize(("text", "kind", "about"), COMMANDS)
    def test_each_is_understood_in_both_languages(self, text: str, kind: CommandKind, about: str) -> None:
        found = parse_command(text)
        assert found is not None
        assert (found.kind, found.argument) == (kind, about)

    @pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in PARAPHRASES.items() for text in texts])
    def test_other_wordings_are_understood(self, kind: CommandKind, text: str) -> None:
        found = parse_command(text)
        assert found is not None
        assert found.kind is kind

    @pytest.mark.parametrize(
        ("text", "about"),
        [
            ("删除关于火锅的记忆", "火锅"),
            ("忘记我对花生过敏", '"我对花生过敏"'),
            ("Forget that I like tea.", '"I like tea"'),
            ("forget my allergy to peanuts", "my allergy to peanuts"),
            ("忘掉火锅那件事", "火锅"),
            ("Forget everything about the Merger.", "the Merger"),
            ("记忆里有没有关于部署的内容", "部署"),
            ("昨天都记了些什么", "昨天"),
            ("show yesterday's memory", "yesterday"),
        ],
    )
    def test_an_argument_needs_no_colon_where_the_sentence_frames_it(self, text: str, about: str) -> None:
        found = parse_command(text)
        assert found is not None
        assert found.argument == about

    @pytest.mark.parametrize(
        "text",
        [
            *ORDINARY,
            "把按钮改成不要保存草稿",
            "How do I save this file to disk",
            "我想搜索记忆里的内容",
            "search memory leaks in the parser",
            "删除记忆 火锅",
            "删除记忆",
            "today's memory usage is high",
            "",
            "：",
        ],
    )
    def test_ordinary_words_are_no_command(self, text: str) -> None:
        assert parse_command(text) is None

    @given(st.text(max_size=200))
    def test_nothing_stops_it(self, text: str) -> None:
        parse_command(text)

    @pytest.mark.parametrize(
        ("text", "about"),
        [
            ("forget the spare key", "the spare key"),
            ("忘记备用钥匙", "备用钥匙"),
            ("forget it", None),
            ("忘了带伞", None),
        ],
    )
    def test_a_deletion_that_may_mean_something_else_is_known_as_such(self, text: str, about: str | None) -> None:
        found = parse_vague_deletion(text)
        assert (found.argument if found is not None else None) == about
        assert parse_command(text) is None

    def test_confirming(self) -> None:
        assert is_confirmation("确认")
        assert is_confirmation("Confirm")
        assert not is_confirmation("")

    def saving(self, turns: list[SummaryTurn], *, auto: bool = True) -> str:
        found = decide_saving(turns, min_rounds=3, auto_save=auto)
        return found.reason if found.is_wanted else f"not: {found.reason}"

    def test_when_to_save(self) -> None:
        three = talk("一一", "二二", "三三", "四四", "五五", "六六")
        assert count_rounds(three) == 3
        assert self.saving(three) == "ended"
        assert self.saving(three[:4]) == "not: too_short"
        assert self.saving(three, auto=False) == "not: auto_save_off"
        assert self.saving([*three, SummaryTurn("user", "不要保存")]) == "not: skip"
        assert self.saving([*three, SummaryTurn("assistant", "不要保存")]) == "ended", "a model decides nothing"
        assert self.saving(talk("记住这个"), auto=False) == "asked"
        assert self.saving(talk("不要保存", "好", "算了，记住这个")) == "asked", "the last word holds"
        assert last_save_request(talk("这是敏感对话", "好", "记住这个")) is CommandKind.SENSITIVE
