"""A report in the forms that people, editors and pipelines read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from planner.handover.checking import Check, CheckReport
from planner.handover.findings import CODES, Finding
from planner.handover.verdicts import CheckedLimit
from planner.units import number, seconds

SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {"error": "error", "warning": "warning", "note": "note"}
NAMES = {"tpot_s": "TPOT", "ttft_s": "TTFT", "requests_per_s": "requests per second"}


def limit_text(limit: CheckedLimit) -> str:
    """Return a limit and its prediction in words."""
    shown = (lambda v: f"{number(v)}/s") if limit.quantity == "requests_per_s" else seconds
    low, middle, high = (
        shown(v) for v in (limit.predicted.p10, limit.predicted.p50, limit.predicted.p90)
    )
    return (
        f"{NAMES[limit.quantity]} {middle} ({low} – {high}), limit {shown(limit.limit)}: "
        f"met with probability {limit.probability:.0%}"
    )


def summary(check: Check) -> str:
    """Return the verdict of a deployment in one sentence."""
    scenario = check.reading.scenario
    model = scenario.model if isinstance(scenario.model, str) else "inline model"
    sure = "" if check.probability is None else f", probability {check.probability:.0%}"
    return f"{check.verdict.upper()}: {model} with {scenario.engine}{sure}; binds: {check.binds}"


def to_text(report: CheckReport) -> str:
    """Return the report for a terminal without colours."""
    return "\n".join(line for line, _ in lines(report)) + "\n"


def lines(report: CheckReport) -> Iterator[tuple[str, str]]:
    """Yield the lines of a report, and what each is: a verdict, a severity or plain."""
    for check in report.checks:
        file = check.reading.file
        yield f"{file}:{check.reading.line}: {summary(check)}", check.verdict
        for limit in check.limits:
            yield f"  {limit.verdict}: {limit_text(limit)}", limit.verdict
        for one in check.findings:
            yield f"{file}:{one.line}: {one.severity}: {one.message} [{one.code}]", one.severity
            yield f"    fix: {one.fix}", "plain"
        for worse in check.regressions:
            text = f"{worse.figure} is {worse.worse:.1%} worse than the baseline: {worse.because}"
            yield f"{file}: regression: {text}", "error"


def to_json(report: CheckReport) -> str:
    """Return the report as REST gives it."""
    return report.model_dump_json(indent=2) + "\n"


def _all(report: CheckReport) -> Iterator[tuple[Check, Finding]]:
    """Yield all findings, missed limits and regressions among them."""
    for check in report.checks:
        for one in check.findings:
            yield check, one
        for limit in check.limits:
            if limit.verdict != "pass":
                severity = "error" if limit.verdict == "fail" else "warning"
                yield (
                    check,
                    Finding(
                        code=f"limit_{limit.verdict}",
                        severity=severity,
                        line=check.reading.line,
                        message=limit_text(limit),
                        fix=f"bound by {check.binds}",
                    ),
                )
        for worse in check.regressions:
            yield (
                check,
                Finding(
                    code="regression",
                    severity="error",
                    line=check.reading.line,
                    message=f"{worse.figure} is {worse.worse:.1%} worse than the baseline",
                    fix=worse.because,
                ),
            )


def to_sarif(report: CheckReport) -> str:
    """Return the report as SARIF 2.1.0."""
    titles = {name: code.title for name, code in CODES.items()}
    titles |= {
        "limit_near": "a limit lies within the prediction's interval",
        "limit_fail": "a limit is missed",
        "regression": "a figure is worse than the baseline's",
    }
    results = [
        {
            "ruleId": one.code,
            "level": LEVELS[one.severity],
            "message": {"text": f"{one.message}. Fix: {one.fix}"},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": check.reading.file},
                        "region": {"startLine": one.line},
                    }
                }
            ],
        }
        for check, one in _all(report)
    ]
    rules = [{"id": name, "shortDescription": {"text": text}} for name, text in titles.items()]
    driver = {"name": "decode-planner", "rules": rules}
    run = {"tool": {"driver": driver}, "results": results}
    return json.dumps({"$schema": SARIF, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def to_junit(report: CheckReport) -> str:
    """Return the report as JUnit XML: a case for each deployment, a failure where it fails."""
    failed = sum(check.verdict == "fail" for check in report.checks)
    suite = Element(
        "testsuite", name="planner check", tests=str(len(report.checks)), failures=str(failed)
    )
    for check in report.checks:
        name = f"{check.reading.kind} at line {check.reading.line}"
        case = SubElement(suite, "testcase", classname=_xml(check.reading.file), name=_xml(name))
        text = _xml(
            "\n".join(
                f"line {one.line}: {one.severity}: {one.message} [{one.code}] fix: {one.fix}"
                for each, one in _all(report)
                if each is check
            )
        )
        if check.verdict == "fail":
            SubElement(case, "failure", message=_xml(summary(check))).text = text
        else:
            SubElement(case, "system-out").text = text
    indent(suite)
    return tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _xml(text: str) -> str:
    """Return a text without the characters that XML does not have."""
    return "".join(
        c if c in "\n\t" or (c.isprintable() and c not in "\ufffe\uffff") else "?" for c in text
    )


def to_github(report: CheckReport) -> str:
    """Return the report as GitHub's workflow commands, an annotation a line."""
    commands = {"error": "error", "warning": "warning", "note": "notice"}
    rows = []
    for check, one in _all(report):
        properties = f"file={_property(check.reading.file)},line={one.line},title={one.code}"
        rows.append(
            f"::{commands[one.severity]} {properties}::{_data(f'{one.message}. Fix: {one.fix}')}"
        )
    rows += [f"::notice ::{_data(summary(check))}" for check in report.checks]
    return "\n".join(rows) + "\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def to_markdown(report: CheckReport) -> str:
    """Return the report as Markdown, for a comment on a change."""
    rows = []
    for check in report.checks:
        rows += [f"### {_cell(check.reading.file)}", "", f"**{_cell(summary(check))}**", ""]
        rows += [f"- {limit.verdict}: {_cell(limit_text(limit))}" for limit in check.limits]
        if check.findings:
            rows += ["", "| line | | finding | fix |", "|---:|---|---|---|"]
            rows += [
                f"| {one.line} | {one.severity} | {_cell(one.message)} `{one.code}` "
                f"| {_cell(one.fix)} |"
                for one in check.findings
            ]
        rows += [
            f"- regression: {worse.figure} {worse.worse:.1%} worse: {_cell(worse.because)}"
            for worse in check.regressions
        ]
        rows.append("")
    return "\n".join(rows)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("`", "'")


FORMATS: Mapping[str, Callable[[CheckReport], str]] = {
    "text": to_text,
    "json": to_json,
    "sarif": to_sarif,
    "junit": to_junit,
    "github": to_github,
    "markdown": to_markdown,
}
"""Forms by the name that `planner check --format` takes."""
