"""Whether something was said: substrings, as these benchmarks test them, and the readings that differ from theirs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Phrases:
    """How a required phrase is looked for in a message.

    Both sides are lower-cased and all commas are removed from the message, as tau-bench and tau2-bench do. Commas in
    the phrase stay unless `commas_removed`: a phrase with one is then never found. A substring is enough (`10` is found
    in `$1,100`) unless `whole_words`.
    """

    commas_removed: bool = False
    whole_words: bool = False

    def found(self, phrase: str, messages: Iterable[str]) -> bool:
        """Whether any message holds the phrase."""
        sought = phrase.lower()
        if self.commas_removed:
            sought = sought.replace(",", "")
        texts = (message.lower().replace(",", "") for message in messages)
        if not self.whole_words:
            return any(sought in text for text in texts)
        pattern = re.compile(rf"(?<![^\W_])(?<!\d\.){re.escape(sought)}(?![^\W_])(?!\.\d)")
        return any(pattern.search(text) is not None for text in texts)
