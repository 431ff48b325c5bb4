"""Routes of the page, of its files, and of pictures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from litestar import Controller, Request, Response, Router, get, post
from litestar.di import NamedDependency
from litestar.exceptions import NotFoundException
from litestar.params import FromPath, URLEncodedBody
from litestar.static_files import create_static_files_router

from api.page import accuracy as accuracy_view
from api.page import check as check_view
from api.page import compare as compare_view
from api.page import explore as explore_view
from api.page import fleet as fleet_view
from api.page import kernels as kernels_view
from api.page import recommend as recommend_view
from api.page.choices import choices
from api.page.form import EXAMPLE, Filled, groups, read
from api.page.render import FOLDER, document, file, page
from api.page.service import Pages
from api.page.shown import Query, Shown
from api.web.call import call_planner
from api.web.problem import rejected
from planner.pictures import chart
from planner.pictures.files import KINDS, browser_module, render
from planner.pictures.style import THEMES
from planner.plans.compare import to_csv, to_markdown

AnyRequest = Request[Any, Any, Any]
Service = NamedDependency[Pages]
PLAIN = {"any_media": True}
READ = {**PLAIN, "scope": "read"}
Sent = URLEncodedBody[dict[str, str]]
OPEN = {"public": True, "any_media": True}
KEPT_S = 86_400
"""How long a browser keeps the module that draws charts [s]."""


def filled_of(request: AnyRequest) -> Filled:
    """Return the form that the query of a request fills; the example where it is empty."""
    return read(list(request.query_params.multi_items()) or EXAMPLE.items())


class PageController(Controller):
    """The view of one scenario, and the pictures of it."""

    include_in_schema = False
    opt = PLAIN

    @get("/", sync_to_thread=True)
    def explore(self, request: AnyRequest, pages: Service) -> Response[bytes]:
        """Show a scenario; it answers without any script."""
        filled = filled_of(request)
        view = explore_view.answer(pages, filled)
        shown = explore_view.parts(view, filled) if view else {"answer": "", "details": ""}
        return page(
            "explore.html",
            charts=explore_view.specifications(view) if view else {},
            status=422 if filled.errors else 200,
            view="explore",
            title=title_of(filled),
            filled=filled,
            groups=groups(),
            choices=choices(),
            query=query_of(filled) if view else "",
            **shown,
        )

    @get("/page/explore", sync_to_thread=True)
    def answer(self, request: AnyRequest, pages: Service) -> Response[bytes]:
        """Return texts and specifications of the answer, or what is wrong by field."""
        filled = filled_of(request)
        view = explore_view.answer(pages, filled)
        if view is None:
            return document({"errors": filled.errors})
        return document(
            {
                "title": title_of(filled),
                "html": explore_view.parts(view, filled),
                "charts": explore_view.specifications(view),
            }
        )

    @get("/page/scenario", sync_to_thread=True)
    def scenario(self, request: AnyRequest) -> Response[bytes]:
        """Return the scenario that a query makes, as `/v1/scenarios` takes it."""
        filled = filled_of(request)
        if filled.scenario is None:
            return document({"errors": filled.errors})
        return document(filled.scenario.model_dump(mode="json", exclude_defaults=True))

    @get("/v1/charts/{name:str}", sync_to_thread=True)
    def picture(self, request: AnyRequest, name: FromPath[str], pages: Service) -> Response[bytes]:
        """Return a picture of a scenario: `roofline.svg`, `.png`, `.html` or `.json` (its spec).

        The query holds the scenario's fields, and `theme`: light or dark.
        """
        query = [item for item in request.query_params.multi_items() if item[0] != "theme"]
        theme = request.query_params.get("theme", "light")
        if theme not in THEMES:
            raise rejected(f"theme: {theme[:40]!r}; accepted: {', '.join(THEMES)}")
        filled = read(query or EXAMPLE.items())
        view = explore_view.answer(pages, filled)
        if view is None:
            raise rejected("; ".join(filled.errors.values()))
        stem, _, kind = name.rpartition(".")
        spec = call_planner(chart, stem, view)
        if kind == "json":
            return document(spec)
        return file(call_planner(render, spec, kind, theme), KINDS[kind])

    @get("/compare", sync_to_thread=True)
    def compare(self, request: AnyRequest, pages: Service) -> Response[bytes]:
        """Show scenarios side by side; it answers without any script."""
        return _view(request, "compare", pages)

    @get("/recommend", sync_to_thread=True)
    def recommend(self, request: AnyRequest, pages: Service) -> Response[bytes]:
        """Show what to run; it answers without any script."""
        return _view(request, "recommend", pages)

    @get("/kernels", sync_to_thread=True)
    def kernels(self, request: AnyRequest, pages: Service) -> Response[bytes]:
        """Show kernels on a roofline; it answers without any script."""
        return _view(request, "kernels", pages)

    @get("/accuracy", sync_to_thread=True)
    def accuracy(self, request: AnyRequest, pages: Service) -> Response[bytes]:
        """Show predicted against measured runs; it answers without any script."""
        return _view(request, "accuracy", pages)

    @get("/fleet", sync_to_thread=True)
    def fleet(self, request: AnyRequest, pages: Service) -> Response[bytes]:
        """Show a day of a fleet; it answers without any script."""
        return _view(request, "fleet", pages)

    @get("/check", sync_to_thread=True)
    def check(self, request: AnyRequest, pages: Service) -> Response[bytes]:
        """Show the check of an example, or of a short text of the address."""
        return _view(request, "check", pages)

    @post("/check", sync_to_thread=True, status_code=200, opt=READ)
    def check_sent(self, request: AnyRequest, data: Sent, pages: Service) -> Response[bytes]:
        """Show the check of a text that a form sent; nothing is stored."""
        del request
        return _document_of("check", check_view.show(pages, list(data.items())))

    @post("/page/check", sync_to_thread=True, status_code=200, opt=READ)
    def check_answer(self, data: Sent, pages: Service) -> Response[bytes]:
        """Return the check of a text that a script sent."""
        return document(check_view.show(pages, list(data.items())).document())

    @get("/page/{view:str}", sync_to_thread=True)
    def other_answer(
        self, request: AnyRequest, view: FromPath[str], pages: Service
    ) -> Response[bytes]:
        """Return texts and specifications of another view, or what is wrong by field."""
        return document(_shown(request, view, pages).document())

    @get("/files/{view:str}/{name:str}", sync_to_thread=True)
    def view_file(
        self, request: AnyRequest, view: FromPath[str], name: FromPath[str], pages: Service
    ) -> Response[bytes]:
        """Return a picture of a view as a file, or `comparison.md` and `.csv` of a comparison."""
        query = list(request.query_params.multi_items())
        stem, _, kind = name.rpartition(".")
        if view == "compare" and stem == "comparison" and kind in TEXTS:
            media_type, text = TEXTS[kind]
            answer = compare_view.ask(pages, query or compare_view.EXAMPLE)
            return file(text(answer.comparison).encode(), media_type)
        shown = _shown(request, view, pages)
        if shown.errors:
            raise rejected("; ".join(shown.errors.values()))
        if stem not in shown.charts:
            texts = [f"comparison.{kind}" for kind in TEXTS] if view == "compare" else []
            accepted = ", ".join([*texts, *(f"{one}.svg" for one in shown.charts)])
            raise rejected(f"name: {name[:40]!r}; accepted: {accepted}")
        return file(call_planner(render, shown.charts[stem], kind), KINDS[kind])


def _view(request: AnyRequest, view: str, pages: Pages) -> Response[bytes]:
    return _document_of(view, _shown(request, view, pages))


def _document_of(view: str, shown: Shown) -> Response[bytes]:
    return page(
        f"{view}.html",
        charts=shown.charts,
        status=422 if shown.errors else 200,
        view=view,
        shown=shown,
        choices=choices(),
        query=shown.query,
        **shown.more,
    )


def _shown(request: AnyRequest, view: str, pages: Pages) -> Shown:
    if view not in OTHERS:
        raise NotFoundException
    return OTHERS[view](pages, list(request.query_params.multi_items()))


OTHERS: dict[str, Callable[[Pages, Query], Shown]] = {
    "compare": compare_view.show,
    "recommend": recommend_view.show,
    "kernels": kernels_view.show,
    "accuracy": accuracy_view.show,
    "fleet": fleet_view.show,
    "check": check_view.show,
}
"""What fills the views that are not of one scenario."""
TEXTS = {
    "md": ("text/markdown; charset=utf-8", to_markdown),
    "csv": ("text/csv; charset=utf-8", to_csv),
}


class DrawingController(Controller):
    """What draws charts in a browser."""

    include_in_schema = False
    opt = OPEN

    @get("/page/charts.js", sync_to_thread=True)
    def module(self) -> Response[bytes]:
        """Return the module that draws specifications."""
        keep = {"Cache-Control": f"private, max-age={KEPT_S}"}
        code = call_planner(browser_module)
        return file(code, "text/javascript; charset=utf-8", **keep)

    @get("/page/themes.json", sync_to_thread=False)
    def themes(self) -> Response[bytes]:
        """Return how charts look on a light and on a dark page."""
        return document(THEMES)


def query_of(filled: Filled) -> str:
    """Return the query that fills a form so."""
    return urlencode(filled.texts)


def title_of(filled: Filled) -> str:
    """Return the title of the view of a scenario."""
    named = [filled.texts.get(name, "") for name in ("model", "gpu")]
    return " on ".join(filter(None, named)) + " · Decode planner"


def page_files() -> Router:
    """Return the routes of the page's own scripts and styles."""
    return create_static_files_router(
        "/page/files", directories=[FOLDER / "static"], opt=OPEN, include_in_schema=False
    )


ROUTES: tuple[Any, ...] = (PageController, DrawingController)
