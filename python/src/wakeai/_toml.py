"""Python values as TOML, for scenarios from keyword arguments and for overrides."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any


def value(item: Any) -> str:
    """The value as TOML in one line. A string stays a string, also one like `"10MB"`."""
    if hasattr(item, "item") and not isinstance(item, (str, bytes)):
        item = item.item()  # a scalar of numpy, or of a tool that follows it
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, (int, float)):
        return repr(item)
    if isinstance(item, str):
        # JSON's escapes are TOML's, except that TOML also wants DEL escaped.
        return json.dumps(item, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(item, Mapping):
        pairs = (f"{value(str(key))} = {value(inner)}" for key, inner in item.items())
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(item, Sequence) and not isinstance(item, (bytes, bytearray)):
        return "[" + ", ".join(value(inner) for inner in item) + "]"
    raise TypeError(
        f"a scenario takes bool, int, float, str, lists and mappings, found {type(item).__name__}"
    )


def document(keys: Mapping[str, Any]) -> str:
    """A document with these keys at its top."""
    return "".join(f"{value(str(key))} = {value(item)}\n" for key, item in keys.items())
