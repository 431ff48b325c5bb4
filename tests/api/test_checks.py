"""Checks over REST are the library's."""

from __future__ import annotations

import json

from api.openapi.examples import CONFIG, EXAMPLES
from planner.handover.checking import CheckQuestion, check
from tests.api.conftest import Client


def test_a_check_is_the_librarys(shared: Client) -> None:
    query = EXAMPLES["createCheck"]
    answer = shared.post("/v1/checks", json=query)
    assert answer.status_code == 200, answer.text
    report = check(query["files"], CheckQuestion(**query["question"]))
    assert answer.content == report.model_dump_json().encode()
    assert answer.json()["contract"] == 1


def test_a_model_of_ones_own_may_be_checked(client: Client) -> None:
    client.post("/v1/models", json={"id": "finetune", "config": CONFIG})
    query = {
        "files": {"start.sh": "vllm serve /models/finetune"},
        "question": {"model": "own/finetune", "gpu": "h100-sxm5"},
    }
    answer = client.post("/v1/checks", json=query)
    assert answer.json()["verdict"] == "pass", answer.text


def test_what_cannot_be_read_is_a_problem(shared: Client) -> None:
    for text, word in (("kind: {{ .Values.kind }}", "template"), ("echo", "no engine")):
        answer = shared.post("/v1/checks", json={"files": {"a": text}})
        assert answer.status_code == 422
        assert word in answer.json()["detail"]


def test_a_file_opens_no_other_file(shared: Client, tmp_path: object) -> None:
    note = json.dumps({"gpu": f"{tmp_path}/gpu.json"})
    text = f"# decode-planner: {note}\nvllm serve Qwen/Qwen2.5-7B-Instruct"
    answer = shared.post("/v1/checks", json={"files": {"a": text}})
    assert answer.status_code == 422
    assert "gpu" in answer.json()["detail"]
