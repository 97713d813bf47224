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
    parts = [
        f"<h1>{escape(document['info']['title'])}</h1>",
        f"<p>{escape(document['info'].get('description', ''))}</p>",
        '<p>For programs: <a href="openapi.json">openapi.json</a></p>',
    ]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            parts.append(_operation(path, method, operation))
    parts.append("<h1>Shapes</h1>")
    for name, shape in document["components"]["schemas"].items():
        parts.append(f'<h2 id="{escape(name)}"><code>{escape(name)}</code></h2>{_pretty(shape)}')
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(document['info']['title'])}</title><style>{_STYLE}</style></head>"
        f"<body>{''.join(parts)}</body></html>"
    )


def _operation(path: str, method: str, operation: Mapping[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(status)}</code></td><td>{escape(reply['description'])}</td></tr>"
        for status, reply in sorted(operation["responses"].items())
    )
    takes = ""
    if "requestBody" in operation:
        kinds = ", ".join(
            f"<code>{escape(kind)}</code>" for kind in operation["requestBody"]["content"]
        )
        takes = f"<p>Takes {kinds}.</p>"
    return (
        f"<h2><code>{escape(method.upper())} {escape(path)}</code></h2>"
        f"<p>{escape(operation.get('summary', ''))}</p>"
        f"<p>{escape(operation.get('description', ''))}</p>{takes}<table>{rows}</table>"
    )


def _pretty(shape: object) -> str:
    return f"<pre>{escape(json.dumps(shape, indent=2, ensure_ascii=False))}</pre>"
