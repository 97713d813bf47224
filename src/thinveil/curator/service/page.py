"""The OpenAPI document as one plain page: no scripts, nothing from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from typing import Any

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 54rem; margin: 2rem auto; padding: 0 1rem }
code, pre { font: 14px/1.4 ui-monospace, monospace }
pre { background: #8881; padding: .8rem; overflow: auto; border-radius: 4px }
td { padding: .1rem 1rem .1rem 0; vertical-align: top }
h2 code { font-size: 20px }
:root { color-scheme: light dark }
"""


def page_of(document: Mapping[str, Any]) -> str:
    """Return an HTML page that describes every address of a service."""
    title = escape(document["info"]["title"])
    operations = "".join(
        _operation(f"{method.upper()} {path}", operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    )
    shapes = "".join(
        f'<h2 id="{escape(name)}"><code>{escape(name)}</code></h2>'
        f"<pre>{escape(json.dumps(shape, indent=2, ensure_ascii=False))}</pre>"
        for name, shape in document["components"]["schemas"].items()
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{title}</title><style>{_STYLE}</style></head><body><h1>{title}</h1>"
        f"<p>{escape(document['info']['description'])}</p>"
        '<p>For programs: <a href="openapi.json">openapi.json</a></p>'
        f"{operations}<h1>Shapes</h1>{shapes}</body></html>"
    )


def _operation(title: str, operation: Mapping[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(status)}</code></td><td>{escape(reply['description'])}</td></tr>"
        for status, reply in sorted(operation["responses"].items())
    )
    kinds = operation.get("requestBody", {"content": ()})["content"]
    takes = ", ".join(f"<code>{escape(kind)}</code>" for kind in kinds)
    return (
        f"<h2><code>{escape(title)}</code></h2><p>{escape(operation['summary'])}</p>"
        f"{takes and f'<p>Takes {takes}.</p>'}<table>{rows}</table>"
    )
