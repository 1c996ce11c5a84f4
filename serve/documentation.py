"""Routes that describe the service: `/spec` and `/docs`."""

import html

import fastapi
from fastapi.responses import HTMLResponse

POLICY = "default-src 'none'; style-src 'self'; frame-ancestors 'none'"
PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Routes of this service</title>
<link rel="stylesheet" href="page.css">
<h1>Routes of this service</h1>
<p>Send the fields of a <code>POST</code> as JSON or as a form.
<a href="spec">The same as OpenAPI</a>, for tools.</p>
<table>
<thead><tr><th>Method</th><th>Path</th><th>Fields</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
</html>
"""


def add_documentation(app: fastapi.FastAPI) -> None:
    """Adds the OpenAPI description, and a page that lists the routes.

    Swagger's page would load its script from another host.
    """

    @app.get("/spec", include_in_schema=False)
    async def spec():
        return app.openapi()

    @app.get("/docs", include_in_schema=False)
    async def docs():
        rows = "\n".join(
            make_row(method.upper(), path, operation)
            for path, methods in app.openapi()["paths"].items()
            for method, operation in methods.items()
        )
        headers = {"Content-Security-Policy": POLICY}
        return HTMLResponse(PAGE.format(rows=rows), headers=headers)


def make_row(method: str, path: str, operation: dict) -> str:
    """Returns a row of the table, in HTML."""
    kinds = operation.get("requestBody", {}).get("content", {})
    schemas = [kind["schema"] for kind in kinds.values()][:1]
    fields = ", ".join(
        name if name in schema.get("required", ()) else f"[{name}]"
        for schema in schemas
        for name in schema["properties"]
    )
    cells = "".join(f"<td>{html.escape(text)}</td>" for text in (method, path, fields))
    return f"<tr>{cells}</tr>"
