"""What this device shows over the shared document."""

from sync.document.capture.exchange_events import MAX_ENTRY_BYTES
from sync.document.markdown.model import Snapshot
from sync.document.markdown.parse import parse
from sync.document.shared.local_overlay import build_overlay, restore_local_text
from sync.document.shared.reducer import SharedReducer
from sync.document.shared.render import render_shared
from tests.support import REDACTOR
from tests.unit.document.shared.examples import make_event, reduce_events


def shown_with_overlay(local: Snapshot | None, fold: SharedReducer) -> Snapshot:
    """What a device with this version shows."""
    return render_shared(fold, build_overlay(local, fold, REDACTOR.clean))


class TestOverlay:
    """What a device's own version adds to the shared document."""

    added = make_event(1, "entry_added", entry_id="e", text="- 喝红茶")
    between = make_event(2, "entry_edited", entry_id="e", base="- 喝红茶", text="- 喝绿茶")
    later = make_event(3, "entry_edited", device="b", entry_id="e", base="- 喝绿茶", text="- 喝龙井")

    def test_a_conflict_copy_goes_when_an_edit_settles_the_conflict(self) -> None:
        """A restored server may send the later edit first; a device that rendered in between agrees in the end."""
        fold = reduce_events(self.added, self.later)
        seen = shown_with_overlay(None, fold)
        assert [entry.text for entry in seen.entries] == ["- 喝红茶", "- 喝龙井"]
        fold.add(self.between)
        assert shown_with_overlay(seen, fold).document == shown_with_overlay(None, fold).document
        again = reduce_events(
            self.added, self.between, self.later
        )  # after a restart, without the intermediate conflict
        assert shown_with_overlay(seen, again).document == shown_with_overlay(None, fold).document

    def test_the_own_line_of_the_device_below_it_stays_in_place(self) -> None:
        end = make_event(2, "entry_added", device="b", entry_id="end", text="- 末", after="e")
        fold = reduce_events(self.added, end, self.later)
        seen = shown_with_overlay(None, fold)
        at = seen.document.text.index("- 末")
        text = seen.document.text[:at] + "- 太长\n" + seen.document.text[at:]
        entries = [entry.entry_id for entry in seen.entries]
        seen = Snapshot(parse(text.encode()), (*entries[:2], "large", *entries[2:]))
        fold.add(self.between)
        assert [entry.text for entry in shown_with_overlay(seen, fold).entries] == ["- 喝龙井", "- 太长", "- 末"]


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
