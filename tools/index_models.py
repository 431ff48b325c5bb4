"""Write planner/models/listing.json: the facts of every catalogue model, for lists.

    python tools/index_models.py

Needs only the repository. To be run after a change of the catalogue's data, or of how the facts of
a model are worked out; tests/models/test_listing.py compares the file with the models.
"""

from __future__ import annotations

import json

from planner.models import describe, list_models
from planner.models.listing import FILE


def main() -> None:
    lines = [json.dumps(describe(spec), ensure_ascii=False) for spec in list_models()]
    FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    print(f"{FILE.name}: {len(lines)} models")


if __name__ == "__main__":
    main()
