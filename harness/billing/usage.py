"""Usage as providers report it, brought into disjoint buckets. Pure.

Dialects differ in what contains what. OpenAI (chat and responses): cached input is part of input, reasoning
part of output. Anthropic and Bedrock: both cache buckets stand beside input; thinking is inside output and not told
apart. Gemini: cached is part of the prompt, thoughts stand beside the candidates. OpenTelemetry's attributes (GenAI
conventions, and OpenInference's names): as OpenAI. litellm speaks OpenAI's chat dialect, whatever is behind it. Audio
is part of input and of output everywhere. A shape that is not known, or that
contradicts itself, is None: an unknown count, never a zero (CASES K02, K03, K05).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeGuard

from harness.records.usage import Usage


class Dialect(StrEnum):
    """Whose shape a usage object has."""

    OPENAI_CHAT = "openai.chat"
    OPENAI_RESPONSES = "openai.responses"
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"
    BEDROCK = "bedrock"
    OTEL = "otel.genai"


_UNKNOWN: dict[str, int | None] = dict(Usage())
_PLAIN_CHAT = frozenset({"prompt_tokens", "completion_tokens", "total_tokens"})
MOST_TOKENS = 10**12  # of one response: no count that is larger was counted


class _Contradiction(Exception):
    """A count is no count, or counts contradict each other."""


def normalise(raw: Any, dialect: Dialect | None = None) -> Usage | None:
    """The usage object of a response as disjoint buckets; recognised by its keys unless `dialect` is given.

    Where a provider states a total, the buckets add up to it, or the result is None.
    """
    if not isinstance(raw, Mapping) or not raw:
        return None
    spoken = dialect or recognise(raw)
    if spoken is None:
        return None
    try:
        return _READERS[spoken](raw)
    except _Contradiction:
        return None


def buckets(raw: Any) -> dict[str, int | None] | None:
    """The fields of what :func:`normalise` gives, in half the time for what archives hold millions of."""
    if type(raw) is dict and raw.keys() <= _PLAIN_CHAT:
        prompt, completion, total = raw.get("prompt_tokens"), raw.get("completion_tokens"), raw.get("total_tokens")
        if _is_count(prompt) and _is_count(completion) and (total is None or _is_count(total)):
            fits = total is None or total == prompt + completion
            return {**_UNKNOWN, "input": prompt, "output": completion} if fits else None
    usage = normalise(raw)
    return None if usage is None else dict(usage)


def _is_count(value: Any) -> TypeGuard[int]:
    return type(value) is int and 0 <= value <= MOST_TOKENS


def normalise_openai_chat(raw: Any) -> Usage | None:
    """The `usage` of an OpenAI-compatible chat answer as disjoint buckets."""
    return normalise(raw, Dialect.OPENAI_CHAT)


def recognise(raw: Mapping[str, Any]) -> Dialect | None:
    """The dialect of a usage object, or None. `input_tokens` alone is read the same way by both who write it."""
    if "prompt_tokens" in raw:
        return Dialect.OPENAI_CHAT
    if "promptTokenCount" in raw or "prompt_token_count" in raw:
        return Dialect.GEMINI
    if "inputTokens" in raw:
        return Dialect.BEDROCK
    if any(name in raw for names in (_OTEL["input_tokens"], _OTEL["output_tokens"]) for name in names):
        return Dialect.OTEL
    if "input_tokens" in raw:
        openai = {"input_tokens_details", "output_tokens_details", "total_tokens"} & raw.keys()
        return Dialect.OPENAI_RESPONSES if openai else Dialect.ANTHROPIC
    return None


def merge_stream(chunks: Iterable[Any]) -> dict[str, Any] | None:
    """One usage object from those of a stream: counts are cumulative, so the last word on each key counts.

    None when no chunk carried usage: the stream was cut, or usage was not asked for.
    """
    merged: dict[str, Any] = {}
    for chunk in chunks:
        if isinstance(chunk, Mapping):
            merged.update({key: value for key, value in chunk.items() if value is not None})
    return merged or None


def _openai_chat(raw: Mapping[str, Any]) -> Usage:
    details, completion = _part(raw, "prompt_tokens_details"), _part(raw, "completion_tokens_details")
    cached = _first(_count(details, "cached_tokens"), _count(raw, "cache_read_input_tokens", "prompt_cache_hit_tokens"))
    written = _first(
        _count(details, "cache_write_tokens", "cache_creation_tokens"), _count(raw, "cache_creation_input_tokens")
    )
    return _inclusive(
        _count(raw, "prompt_tokens"),
        _Parts(cached, written, _count(details, "audio_tokens")),
        _count(raw, "completion_tokens"),
        _Parts(reasoning=_count(completion, "reasoning_tokens"), audio=_count(completion, "audio_tokens")),
        _count(raw, "total_tokens"),
    )


def _openai_responses(raw: Mapping[str, Any]) -> Usage:
    details, output = _part(raw, "input_tokens_details"), _part(raw, "output_tokens_details")
    return _inclusive(
        _count(raw, "input_tokens"),
        _Parts(
            _count(details, "cached_tokens"),
            _count(details, "cache_write_tokens", "cache_creation_tokens"),
            _count(details, "audio_tokens"),
        ),
        _count(raw, "output_tokens"),
        _Parts(reasoning=_count(output, "reasoning_tokens"), audio=_count(output, "audio_tokens")),
        _count(raw, "total_tokens"),
    )


# Attribute names: the GenAI conventions, what came before them, and OpenInference's.
_OTEL = {
    "input_tokens": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt"),
    "output_tokens": ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion"),
    "cached": ("gen_ai.usage.cache_read.input_tokens", "llm.token_count.prompt_details.cache_read"),
    "written": ("gen_ai.usage.cache_creation.input_tokens", "llm.token_count.prompt_details.cache_write"),
    "audio": ("llm.token_count.prompt_details.audio",),
    "reasoning": ("gen_ai.usage.reasoning.output_tokens", "llm.token_count.completion_details.reasoning"),
    "spoken": ("llm.token_count.completion_details.audio",),
    "total": ("gen_ai.usage.total_tokens", "llm.token_count.total", "llm.usage.total_tokens"),
}


def _otel(raw: Mapping[str, Any]) -> Usage:
    counts = {name: _count(raw, *attributes) for name, attributes in _OTEL.items()}
    return _inclusive(
        counts["input_tokens"],
        _Parts(counts["cached"], counts["written"], counts["audio"]),
        counts["output_tokens"],
        _Parts(reasoning=counts["reasoning"], audio=counts["spoken"]),
        counts["total"],
    )


@dataclass(frozen=True)
class _Parts:
    """What a count includes. None: not said."""

    cached: int | None = None
    written: int | None = None
    audio: int | None = None
    reasoning: int | None = None

    @property
    def total(self) -> int:
        return sum(part or 0 for part in (self.cached, self.written, self.audio, self.reasoning))


def _inclusive(
    prompt: int | None, of_prompt: _Parts, completion: int | None, of_completion: _Parts, total: int | None
) -> Usage:
    """Cached and audio input inside input, reasoning and audio inside output. Some services that speak this dialect
    put reasoning beside output: their stated total says so."""
    reasoning = of_completion.reasoning
    visible = completion
    if completion is not None and of_completion.total:
        beside = bool(reasoning) and prompt is not None and total == prompt + completion + (reasoning or 0)
        visible = _less(completion, (of_completion.audio or 0) if beside else of_completion.total)
    usage = Usage(
        input=_less(prompt, of_prompt.total),
        cache_read=of_prompt.cached,
        cache_write=of_prompt.written,
        output=visible,
        reasoning=reasoning,
        audio_input=of_prompt.audio,
        audio_output=of_completion.audio,
    )
    return _agreeing(usage, total)


def _anthropic(raw: Mapping[str, Any]) -> Usage:
    usage = Usage(
        input=_count(raw, "input_tokens"),
        cache_read=_count(raw, "cache_read_input_tokens"),
        cache_write=_count(raw, "cache_creation_input_tokens"),
        output=_count(raw, "output_tokens"),
    )
    return _agreeing(usage, None)


def _bedrock(raw: Mapping[str, Any]) -> Usage:
    usage = Usage(
        input=_count(raw, "inputTokens"),
        cache_read=_count(raw, "cacheReadInputTokens", "cacheReadInputTokenCount"),
        cache_write=_count(raw, "cacheWriteInputTokens", "cacheWriteInputTokenCount"),
        output=_count(raw, "outputTokens"),
    )
    return _agreeing(usage, None)


def _gemini(raw: Mapping[str, Any]) -> Usage:
    prompt = _count(raw, "promptTokenCount", "prompt_token_count")
    cached = _count(raw, "cachedContentTokenCount", "cached_content_token_count")
    thoughts = _count(raw, "thoughtsTokenCount", "thoughts_token_count")
    tools = _count(raw, "toolUsePromptTokenCount", "tool_use_prompt_token_count")
    output = _count(raw, "candidatesTokenCount", "candidates_token_count")
    total = _count(raw, "totalTokenCount", "total_token_count")
    if output is None and total is not None and prompt is not None:
        # The key is left out when the answer has no visible part; the total says so.
        output = _less(total, prompt + (thoughts or 0) + (tools or 0))
    heard, spoken = _audio(raw, "promptTokensDetails"), _audio(raw, "candidatesTokensDetails")
    if heard:  # of the prompt, of which the cached part has its own list
        heard = _less(heard, _audio(raw, "cacheTokensDetails") or 0)
    fresh = _less(prompt, (cached or 0) + (heard or 0))
    usage = Usage(
        input=None if fresh is None else fresh + (tools or 0),
        cache_read=cached,
        output=_less(output, spoken or 0),
        reasoning=thoughts,
        audio_input=heard,
        audio_output=spoken,
    )
    return _agreeing(usage, total)


def _audio(raw: Mapping[str, Any], name: str) -> int | None:
    """Audio tokens in Gemini's list of counts by modality, or None where there is no such entry."""
    snake = re.sub(r"(?=[A-Z])", "_", name).lower()
    entries = raw.get(name, raw.get(snake))
    if not isinstance(entries, list):
        return None
    audio = [entry for entry in entries if isinstance(entry, Mapping) and entry.get("modality") == "AUDIO"]
    counts = [_count(entry, "tokenCount", "token_count") or 0 for entry in audio]
    return sum(counts) if counts else None


_READERS = {
    Dialect.OPENAI_CHAT: _openai_chat,
    Dialect.OPENAI_RESPONSES: _openai_responses,
    Dialect.ANTHROPIC: _anthropic,
    Dialect.GEMINI: _gemini,
    Dialect.BEDROCK: _bedrock,
    Dialect.OTEL: _otel,
}


def _count(raw: Mapping[str, Any], *names: str) -> int | None:
    """The first of the named counts that is there."""
    if not raw:
        return None
    for name in names:
        value = raw.get(name)
        if value is None:
            continue
        if type(value) is int and 0 <= value <= MOST_TOKENS:
            return value
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0 or value != value // 1:
            raise _Contradiction
        if value > MOST_TOKENS:
            raise _Contradiction
        return int(value)
    return None


def _part(raw: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = raw.get(name)
    if part is None:
        return {}
    if not isinstance(part, Mapping):
        raise _Contradiction
    return part


def _first(*counts: int | None) -> int | None:
    return next((count for count in counts if count is not None), None)


def _less(whole: int | None, part: int) -> int | None:
    if whole is None:
        return None
    if part > whole:
        raise _Contradiction
    return whole - part


def _agreeing(usage: Usage, total: int | None) -> Usage:
    if not usage.known or (total is not None and usage.total != total):
        raise _Contradiction
    return usage
