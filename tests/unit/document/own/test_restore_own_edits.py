"""The line as this device shows it: the text in the log with the values that were typed here."""

from sync.document.capture.exchange_events import MAX_ENTRY_BYTES
from sync.document.own.restore_own_edits import restore_local_text


class TestRestoreLocalText:
    @staticmethod
    def clean(text: str) -> str:
        return text.replace("密码 abc", "密码 [密钥]").replace("138", "[手机号]")

    def test_a_typed_value_is_restored_in_an_edited_line(self) -> None:
        assert restore_local_text("- 电话 138", "- 我的 [手机号]。", self.clean) == "- 我的 138。"

    def test_a_value_is_not_restored_if_it_would_no_longer_be_redacted(self) -> None:
        """The document also leaves the device after another redaction, and the secret would leave with it."""
        assert restore_local_text("- 密码 abc", "- 暗号 [密钥]", self.clean) == "- 暗号 [密钥]"

    def test_a_line_too_large_for_an_event_stays_on_its_device(self) -> None:
        large = "- " + "a" * MAX_ENTRY_BYTES
        assert restore_local_text(large, "- 短", self.clean) == large
