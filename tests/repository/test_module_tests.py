"""Every module has a test file of its name, or a line here; every unit test is named after its module."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.support import REPOSITORY

KINDS: Final = ("unit", "integration", "property", "contract", "acceptance")

# A module, or a folder whose modules have no tests of their own: the test, below `tests`, that fails if it is wrong.
PROTECTED_BY: Final = {
    "bridge/": "integration/bridge/rpc/test_stdio_transport.py",
    "bridge/api/": "unit/bridge/api/test_method_table.py",
    "bridge/api/path_params.py": "fuzz/test_paths.py",
    "bridge/cli/": "acceptance/test_command_line.py",
    "bridge/cli/account/": "acceptance/accounts/test_login.py",
    "bridge/cli/account/devices.py": "acceptance/accounts/test_device_management.py",
    "bridge/cli/admin.py": "acceptance/accounts/test_admin_commands.py",
    "bridge/cli/doctor.py": "acceptance/test_doctor.py",
    "bridge/cli/log/": "contract/test_events_cli.py",
    "bridge/cli/log/archive.py": "acceptance/log/test_archive.py",
    "bridge/cli/log/forget.py": "acceptance/privacy/test_forget.py",
    "bridge/cli/log/redact.py": "acceptance/privacy/test_redact_command.py",
    "bridge/cli/log/retention.py": "acceptance/privacy/test_retention.py",
    "bridge/cli/memory/": "acceptance/test_command_line.py",
    "bridge/hooks/": "unit/bridge/hooks/test_hosts.py",
    "bridge/hooks/commands.py": "acceptance/test_documentation_examples.py",
    "bridge/hooks/health.py": "acceptance/test_doctor.py",
    "bridge/hooks/json_text.py": "unit/bridge/hooks/test_hook_settings.py",
    "bridge/cli/memory/lessons.py": "acceptance/log/test_lessons.py",
    "bridge/methods/memory/lessons.py": "acceptance/log/test_lessons.py",
    "bridge/methods/memory/lesson_review.py": "acceptance/log/test_lessons.py",
    "bridge/methods/memory/lesson_transfer.py": "acceptance/log/test_lessons.py",
    "bridge/cli/memory/lesson_display.py": "acceptance/log/test_lessons.py",
    "sync/contract/lessons.py": "acceptance/log/test_lessons.py",
    "sync/lessons/": "acceptance/log/test_lessons.py",
    "sync/lessons/files/": "acceptance/log/test_lesson_files.py",
    "sync/startup/lesson_check.py": "acceptance/log/test_lessons.py",
    "sync/log/event_types.py": "unit/log/test_event_catalogue.py",
    "sync/log/devices/device_only_events.py": "unit/log/test_event_catalogue.py",
    "sync/log/devices/store.py": "integration/lan/test_authors.py",
    "sync/cloud/auth/event_signer.py": "integration/lan/test_authors.py",
    "bridge/cli/memory/facts.py": "acceptance/test_documentation_examples.py",
    "bridge/methods/memory/facts.py": "acceptance/test_documentation_examples.py",
    "sync/contract/facts.py": "acceptance/test_documentation_examples.py",
    "sync/log/devices/changes_json.py": "acceptance/accounts/test_foreign_changes.py",
    "sync/understanding/changes/service.py": "acceptance/accounts/test_foreign_changes.py",
    "sync/understanding/": "acceptance/test_documentation_examples.py",
    "sync/understanding/second_reader/": "integration/understanding/second_reader/test_model_extraction.py",
    "sync/understanding/likeness.py": "unit/understanding/test_reconcile.py",
    "sync/notes/": "acceptance/document/test_notes.py",
    "sync/notes/index_format.py": "property/notes/test_note_files.py",
    "sync/startup/notes_check.py": "acceptance/document/test_notes.py",
    "bridge/cli/memory/daily.py": "acceptance/document/test_daily.py",
    "bridge/event_subscription.py": "acceptance/log/test_log_methods.py",
    "bridge/inflight_calls.py": "integration/accounts/test_logout_during_calls.py",
    "bridge/methods/": "contract/test_rpc_contract.py",
    "bridge/methods/account/": "acceptance/accounts/test_login.py",
    "bridge/methods/log/": "acceptance/log/test_log_methods.py",
    "bridge/methods/memory/": "acceptance/document/test_document_methods.py",
    "bridge/methods/memory/insights.py": "acceptance/log/test_insights_methods.py",
    "bridge/methods/memory/recall.py": "acceptance/log/test_recall.py",
    "bridge/rpc/": "integration/bridge/rpc/test_stdio_transport.py",
    "bridge/rpc/endpoint_client.py": "acceptance/test_endpoint.py",
    "bridge/rpc/local_endpoint.py": "acceptance/test_endpoint.py",
    "sync/": "acceptance/test_first_steps.py",
    "sync/accounts/sidecar_lock.py": "acceptance/reliability/test_concurrent_starts.py",
    "sync/archive/": "integration/archive/test_service.py",
    "sync/archive/chat_events.py": "integration/archive/test_import_sources.py",
    "sync/archive/source_files.py": "integration/archive/test_import_sources.py",
    "sync/cloud/": "contract/test_cloud_port.py",
    "sync/cloud/auth/": "integration/cloud/auth/test_account.py",
    "sync/cloud/supabase/": "integration/cloud/supabase/test_cloud.py",
    "sync/cloud/supabase/admin.py": "acceptance/accounts/test_admin_commands.py",
    "sync/contract/": "contract/test_golden_json.py",
    "sync/daily/": "integration/daily/test_service.py",
    "sync/daily/commands/": "integration/daily/commands/test_command_handler.py",
    "sync/daily/conversation/": "integration/daily/test_service.py",
    "sync/daily/pages/": "integration/daily/pages/test_page_files.py",
    "sync/daily/records/": "property/daily/records/test_reducer.py",
    "sync/db/": "unit/db/test_engine.py",
    "sync/db/read_only.py": "acceptance/reliability/test_read_only.py",
    "sync/db/rebuild/": "integration/db/rebuild/test_salvage.py",
    "sync/db/rebuild/convert.py": "integration/encryption/test_database_encryption.py",
    "sync/document/": "integration/document/test_erased_lines.py",
    "sync/document/capture/": "integration/document/capture/test_capture_policy.py",
    "sync/document/erasure/": "integration/document/erasure/test_selection.py",
    "sync/document/markdown/": "property/document/markdown/test_any_document.py",
    "sync/document/merge/": "unit/document/merge/test_three_way.py",
    "sync/document/ownership/": "integration/document/surfaces/test_handover.py",
    "sync/document/read/": "unit/document/read/test_prompt.py",
    "sync/document/own/": "integration/document/own/test_restore_own_edits.py",
    "sync/document/surfaces/": "integration/document/surfaces/test_memory_file.py",
    "sync/document/versions/": "integration/document/versions/test_history_and_restore.py",
    "sync/encryption/": "integration/encryption/test_database_encryption.py",
    "sync/erasure_service.py": "acceptance/privacy/test_forget.py",
    "sync/errors.py": "unit/bridge/api/test_errors.py",
    "sync/insights/service.py": "integration/insights/test_cache.py",
    "sync/jsonl/": "integration/jsonl/test_projection.py",
    "sync/log/": "unit/log/test_log.py",
    "sync/log/erased_store.py": "integration/cloud/replication/test_erasure_guard.py",
    "sync/log/identity/": "unit/cloud/test_replication_store.py",
    "sync/log/integrity/store.py": "acceptance/log/test_event_store.py",
    "sync/log/outbox_store.py": "unit/cloud/test_replication_store.py",
    "sync/log/projections/": "integration/log/projections/test_runner.py",
    "sync/log/sessions/": "integration/log/sessions/test_tracker.py",
    "sync/recall/": "integration/recall/test_search.py",
    "sync/recall/index/": "integration/recall/test_search.py",
    "sync/recall/ranking/": "integration/recall/test_search.py",
    "sync/recall/semantic/": "integration/recall/semantic/test_semantic_index.py",
    "bridge/cli/account/lan.py": "acceptance/accounts/test_lan.py",
    "bridge/methods/account/lan.py": "acceptance/accounts/test_lan.py",
    "sync/lan/": "integration/lan/test_service.py",
    "sync/lan/transport/": "integration/lan/test_service.py",
    "sync/lan/discovery/pairing_search.py": "integration/lan/test_pairing.py",
    "sync/lan/pairing/": "integration/lan/test_pairing.py",
    "sync/accounts/paired_devices.py": "integration/lan/test_pairing.py",
    "sync/lan/access.py": "acceptance/accounts/test_lan.py",
    "sync/lan/store.py": "integration/lan/test_exchange.py",
    "sync/recall/text/": "unit/recall/text/test_tokenizer.py",
    "sync/redaction/": "unit/redaction/test_redactor.py",
    "sync/redaction/detectors/": "unit/redaction/detectors/test_tokens.py",
    "sync/redaction/detectors/numbers.py": "unit/redaction/detectors/test_personal_codes.py",
    "sync/redaction/detectors/wrapped_secrets.py": "unit/redaction/detectors/test_structured_secrets.py",
    "sync/redaction/rules/": "property/redaction/test_redactor.py",
    "sync/retention/": "integration/retention/test_service.py",
    "sync/runtime/": "unit/runtime/test_supervision.py",
    "sync/chinese_words.py": "unit/daily/conversation/test_keywords.py",
    "sync/lazy_recall.py": "integration/startup/test_lazy_imports.py",
    "sync/context/": "integration/context/test_service.py",
    "sync/recall/hits.py": "integration/recall/test_search.py",
    "sync/services.py": "integration/startup/test_lazy_imports.py",
    "sync/settings/": "unit/settings/test_settings.py",
    "sync/startup/": "integration/db/rebuild/test_salvage.py",
    "sync/startup/doctor.py": "acceptance/test_doctor.py",
    "sync/system/": "unit/system/test_files.py",
    "sync/system/hardware_id.py": "unit/accounts/test_profiles.py",
    "sync/system/secret_store.py": "unit/cloud/auth/test_session_storage.py",
}


def modules() -> Iterator[Path]:
    for package in ("sync", "bridge"):
        for path in (REPOSITORY / package).rglob("*.py"):
            if path.name not in {"__init__.py", "__main__.py"}:
                yield path.relative_to(REPOSITORY)


def own_test(module: Path) -> Path:
    """The path of a module's test file below `tests/unit`: the packages of `sync` stand there directly."""
    folder = module.parent.relative_to("sync") if module.parts[0] == "sync" else module.parent
    return folder / f"test_{module.name}"


def keys_of(module: Path) -> list[str]:
    """The lines that can name a module: its path, or its own folder."""
    return [str(module), f"{module.parent}/"]


def untested_modules() -> list[Path]:
    tests = REPOSITORY / "tests"
    return [module for module in modules() if not any((tests / kind / own_test(module)).exists() for kind in KINDS)]


def test_every_module_without_a_test_of_its_name_is_protected_by_another() -> None:
    assert [str(module) for module in untested_modules() if not PROTECTED_BY.keys() & keys_of(module)] == []


def test_every_line_is_needed_and_names_a_test_that_exists() -> None:
    used = {next((key for key in keys_of(module) if key in PROTECTED_BY), "") for module in untested_modules()}
    assert PROTECTED_BY.keys() - used == set()
    assert [test for test in PROTECTED_BY.values() if not (REPOSITORY / "tests" / test).exists()] == []


def test_a_unit_test_is_named_after_its_module_and_no_name_occurs_twice() -> None:
    unit = REPOSITORY / "tests" / "unit"
    found = [path.relative_to(unit) for path in unit.rglob("test_*.py")]
    assert set(found) - {own_test(module) for module in modules()} == set()
    names = [path.name for path in found]
    assert sorted(names) == sorted(set(names))
