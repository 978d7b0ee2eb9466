"""The demo's display: one live screen on a terminal, plain lines elsewhere."""

import time
from types import TracebackType
from typing import Final, Self

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

PANEL_LINES: Final = 14


class Display:
    """Steps with their times below, three windows above: device A's file, the server, what device B sees."""

    def __init__(self) -> None:
        self.console = Console(highlight=False)
        self.windows: dict[str, list[str]] = {"A": [], "cloud": [], "B": []}
        self.titles = {"A": "device A: its file", "cloud": "the cloud: events", "B": "device B: load() shows of A"}
        self.went_wrong = False  # any step
        self._steps: list[Text] = []
        self._began = time.monotonic()
        self._live = Live(console=self.console, get_renderable=self._picture, refresh_per_second=8, transient=False)

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.console.is_terminal:
            self._live.__exit__(kind, error, trace)

    def step(self, text: str, *, note: str = "", good: bool | None = None) -> None:
        """Print one line. `good` is None for a step that begins."""
        self.went_wrong |= good is False
        mark, style = {None: ("·", "dim"), True: ("✓", "green"), False: ("✗", "bold red")}[good]
        line = Text.assemble((f"{time.monotonic() - self._began:6.1f}s {mark} ", style), text)
        if note:
            line.append(f"  {note}", style="cyan")
        self._steps.append(line)
        if not self.console.is_terminal:
            self.console.print(line, soft_wrap=True)

    def _picture(self) -> Group:
        table = Table.grid(expand=True)
        for _ in self.windows:
            table.add_column(ratio=1)
        panels = []
        for name, lines in self.windows.items():
            body = Text("\n".join(lines[-PANEL_LINES:]), no_wrap=True, overflow="ellipsis")
            panels.append(Panel(body, title=self.titles[name], height=PANEL_LINES + 2, border_style="blue"))
        table.add_row(*panels)
        room = max(4, self.console.size.height - PANEL_LINES - 4)
        return Group(table, *self._steps[-room:])
