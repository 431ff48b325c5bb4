"""The questions of docs/tables.md, answered from the table that its command makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scripts import script

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

TABLES = script("write_tables")
TEXT = TABLES.PAGE.read_text("utf-8")
QUESTIONS = TABLES.QUESTION.findall(TEXT)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory in which the command of the page was run."""
    path = tmp_path_factory.mktemp("questions")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        TABLES.make_table(TEXT)
    return path


@pytest.mark.parametrize(("sql", "shown"), QUESTIONS, ids=["cheapest", "largest", "impossible"])
def test_the_answer_is_what_stands_there(
    sql: str, shown: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert TABLES.answer(sql) == shown
    assert len(shown.splitlines()) > 1


def test_polars_reads_the_same(folder: Path) -> None:
    polars = pytest.importorskip("polars")
    table = polars.scan_parquet(folder / "table/*/*.parquet", hive_partitioning=True)
    rows = table.filter(polars.col("error").is_null()).collect()
    # 3 models, 5 accelerators, 4 of the 5 degrees, 11 batches, 3 contexts
    assert len(rows) == 3 * 5 * 4 * 11 * 3
    assert set(rows["model"]) == {
        "Qwen/Qwen3-32B",
        "deepseek-ai/DeepSeek-V3",
        "meta-llama/Llama-3.1-70B-Instruct",
    }
    assert (rows["tpot_p10_s"] <= rows["tpot_p90_s"]).all()


def test_the_columns_of_the_page_are_those_of_the_table(folder: Path) -> None:
    part = TEXT[TEXT.index("## Columns") :]
    table = duckdb.read_parquet(f"{folder}/table/*/*.parquet", hive_partitioning=True)
    for name in table.columns:
        assert name in part, name
