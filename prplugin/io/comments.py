"""Comments in text files: which lines they are, how many, and what those above the first record say."""

from __future__ import annotations

import re
from functools import reduce

import numpy as np

NOT_LINE_ENDS = bytes(set(range(256)) - set(b"\r\n"))
SLICE = 1 << 17  # bytes that are compared at once, so that temporary arrays stay in the cache
LEADING_LINES = 100  # number of comments above the first record that are kept
LINE_END = rb"(?:\r?\n|\r)"
NONE = rb"(?!)"  # pattern that matches nothing

UNDIRECTED = re.compile(r"%\s*sym\b|#\s*undirected graph\b", re.IGNORECASE)
BIPARTITE = re.compile(r"%\s*bip\b", re.IGNORECASE)


class Comments:
    """The comments of one file, which are removed as it is read.

    `characters`: Characters with which such a line begins, after blanks.
    `anywhere`: Whether all lines that begin so are comments. If not, those below the first record are only if a blank
    follows, so that lines of names such as ``#topic`` are records.
    `delimiter`: Of the fields; None for blanks.
    `count`: Number of comments so far.
    `leading`: The first of those above the first record.
    """

    def __init__(self, characters: str = "", *, anywhere: bool = True, delimiter: str | None = None) -> None:
        self._marks, self._anywhere = characters.encode(), anywhere
        mark = rb"[%s]" % re.escape(self._marks) if characters else NONE
        blanks, empty = (rb"[ \t]*+", rb"[ \t\v\f\r\n]") if delimiter is None else (rb" *+", rb"[\r\n]")
        rest = rb"[^\r\n]*+"
        # Groups are not possessive, and their repetitions are bounded: see `prplugin.io.text_blocks`.
        self._above = re.compile(rb"(?:%s++|%s%s%s[\r\n]){0,1000}" % (empty, blanks, mark, rest))
        self.line = blanks + mark + (b"" if anywhere else rb"++(?![^ \t\r\n])") + rest if characters else NONE
        """Pattern of a comment below the first record, without its line end."""
        self._lines = re.compile(rb"(?:(?<![^\r\n])%s%s){1,1000}" % (self.line, LINE_END))
        self.count, self.leading = 0, list[str]()

    def end_of_leading(self, text: bytes) -> int:
        """Return the end of the empty lines and comments with which whole lines begin, and count the comments."""
        if (count := self._only_comments(text, anywhere=True)) is None:
            end = 0
            while (after := self._above.match(text, end).end()) > end:  # type: ignore[union-attr]  # also matches nothing
                end = after
            lines = text[:end].splitlines()
            count = sum(not line.isspace() for line in lines if line)
        else:
            end, lines = len(text), text[: 1 << 16].splitlines()
        room = LEADING_LINES - len(self.leading)
        self.leading += [line.decode(errors="replace").strip() for line in lines if line.strip()][:room]
        self.count += count
        return end

    def are_all(self, text: bytes) -> bool:
        """Return whether text has only comments and empty lines below the first record, and if so count them."""
        count = self._only_comments(text, anywhere=self._anywhere)
        self.count += count or 0
        return count is not None

    def removed(self, text: bytes, record: re.Pattern[bytes] | None = None) -> bytes:
        """Return text of whole lines with nothing in place of each comment, and count them.

        `record`: Pattern of a record or comment with its line end, if records with quotes may have several lines.
        """
        if not any(mark in text for mark in self._marks):
            return text
        if record is None:
            return self._lines.sub(self._emptied, text)
        comment = re.compile(self.line)
        return record.sub(lambda found: self._emptied(found) if comment.match(found[0]) else found[0], text)

    def undirected(self) -> tuple[str, bool]:
        """Return the comment above the edges that says that they have no direction, and whether the graph is bipartite.

        The first line of a file of KONECT is ``% sym``, ``% asym`` or, if its two columns hold different vertices,
        ``% bip``, and the kind of the weights; a file of SNAP may begin with ``# Undirected graph``.
        """
        if self.leading and BIPARTITE.match(self.leading[0]):
            return self.leading[0], True
        return next(filter(UNDIRECTED.match, self.leading), ""), False

    def _emptied(self, found: re.Match[bytes]) -> bytes:
        self.count += len(found[0].splitlines())
        return found[0].translate(None, NOT_LINE_ENDS)

    def _only_comments(self, text: bytes, *, anywhere: bool) -> int | None:
        """Return the number of comments if text has only them and empty lines, and otherwise None; in bulk."""
        if not text or text[0] not in self._marks + b"\r\n":
            return None
        letters, total = np.frombuffer(b"\n" + text + b"\n", np.uint8), 0
        for first in range(0, len(text), SLICE):
            part = letters[first : first + SLICE + 2]  # with the letters before and after
            is_end = (part == ord("\n")) | (part == ord("\r"))
            begins = is_end[:-2] & ~is_end[1:-1]
            marked = reduce(np.logical_or, (part[1:-1] == mark for mark in self._marks), np.False_)
            if not anywhere:
                marked = marked & (is_end[2:] | (part[2:] == ord(" ")) | (part[2:] == ord("\t")))
            count = int(np.count_nonzero(begins))
            if np.count_nonzero(begins & marked) != count:
                return None
            total += count
        return total
