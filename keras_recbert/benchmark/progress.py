"""What a long run says while it runs."""

import shutil
import sys
import time


class Progress:
    """Lines that stay, and on a terminal one line that changes.

    Attributes:
        counter: str. Put before the changing line, such as `"[2/9] "`.
    """

    def __init__(self, stream=None):
        self._stream = stream or sys.stdout
        self._is_live = False
        self._start = time.monotonic()
        self.counter = ""

    def say(self, text):
        """Prints text that stays."""
        self._clear()
        print(text, file=self._stream, flush=True)

    def live(self, text):
        """Replaces the changing line; says nothing where that is no terminal."""
        if not self._stream.isatty():
            return
        minutes, seconds = divmod(int(time.monotonic() - self._start), 60)
        line = f"{minutes}:{seconds:02} {self.counter}{text}"
        width = shutil.get_terminal_size().columns - 1
        self._clear()
        print(line[:width], end="", file=self._stream, flush=True)
        self._is_live = True

    def _clear(self):
        if self._is_live:
            print("\r\033[K", end="", file=self._stream)
            self._is_live = False
