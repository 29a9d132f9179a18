#!/usr/bin/env python3
"""test_alerts.py - the alert rules of packaging/alerts; TAP.

Goal: the rules are valid, each fires when it should and only then, and they speak of series that
ron has. Method: promtool on the files; promtool again on rules with one threshold moved, which its
tests must notice; the metric tables of src/ are read as text.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
RULES = os.path.join(ROOT, "packaging", "alerts", "ledger.rules.yml")
TESTS = os.path.join(ROOT, "packaging", "alerts", "ledger.test.yml")
PROMTOOL = shutil.which("promtool") or os.path.join(ROOT, ".deps/prometheus/usr/bin/promtool")

# The seed's alerts: name, what its rule must hold, and a change that its test must notice.
ALERTS = {
    "LedgerCommitSlow": [("> 0.08", "> 0.15"), ("> 0.08", "> 0.07"), ("0.95,", "0.90,"),
                         ("for: 5m", "for: 4m"), ("for: 5m", "for: 6m")],
    "LedgerCommitQueueHigh": [("0.8 *", "0.9 *"), ("0.8 *", "0.7 *"), ("for: 2m", "for: 1m"),
                              ("for: 2m", "for: 3m"), (">", "<")],
    "LedgerIngressBusy": [("> 50", "> 51"), ("> 50", "> 49"), ('{q="ingress"}', ""),
                          ("sum without (endpoint) ", "")],
    "LedgerTaskLeaked": [("> 0", "> 1"), ('{role="ledger"}', "")],
}
SEVERITIES = {"LedgerCommitSlow": "warn", "LedgerCommitQueueHigh": "page",
              "LedgerIngressBusy": "warn", "LedgerTaskLeaked": "page"}
# The seed's metrics and the label each must have.
METRICS = {
    "queue_depth": "q", "busy_rejections_total": "q", "drops_total": "q",
    "tasks_leaked_total": None, "prevalidator_duration_seconds": None,
    "sequencer_batch_size": None, "committer_batch_latency_seconds": None,
    "roots_published_total": None, "ledger_safe_mode": None, "seq_gap_detected_total": None,
    "io_timeouts_total": "op",
}
ROW = re.compile(r'X\(\w+,\s*(COUNTER|GAUGE|HISTOGRAM),\s*"(\w+)",\s*\d+,\s*\d+,\s*'
                 r'"[^"]*"([^)]*)\)')
SELECTOR = re.compile(r"(?<![\w{\"])([a-z_][a-z0-9_]*)(\{[^}]*\})?(?![\w(])")
WORDS = {"sum", "without", "by", "rate", "histogram_quantile", "m", "endpoint"}


def metric_tables():
    """Every metric of the tables: name -> (type, labels)."""
    metrics = {}
    for path in glob.glob(os.path.join(ROOT, "src", "*", "*metric*.h")):
        with open(path, encoding="utf-8") as file:
            for kind, name, labels in ROW.findall(file.read()):
                assert name not in metrics, name
                metrics[name] = (kind, re.findall(r'"(\w+)"', labels))
    return metrics


def rules():
    """The rules, as pieces of text: name -> (expression, severity)."""
    with open(RULES, encoding="utf-8") as file:
        pieces = re.split(r"- alert: ", file.read())[1:]
    return {piece.split("\n")[0]: (re.search(r"expr: (.*)", piece).group(1),
                                   re.search(r"severity: (\w+)", piece).group(1))
            for piece in pieces}


def run(*arguments, folder=None):
    return subprocess.run([PROMTOOL, *arguments], capture_output=True, text=True, cwd=folder,
                          timeout=60, check=False)


def the_rules_are_valid():
    done = run("check", "rules", RULES)
    assert done.returncode == 0, done.stderr
    assert "4 rules found" in done.stdout, done.stdout


def each_fires_and_only_then():
    done = run("test", "rules", TESTS)
    assert done.returncode == 0, done.stdout + done.stderr


def they_are_the_four_of_the_seed():
    assert {name: severity for name, (_, severity) in rules().items()} == SEVERITIES


def a_moved_threshold_is_noticed():
    with open(RULES, encoding="utf-8") as file:
        text = file.read()
    for name, changes in ALERTS.items():
        start = text.index("- alert: " + name)
        end = text.find("- alert: ", start + 1)
        end = len(text) if end < 0 else end
        for old, new in changes:
            piece = text[start:end]
            expression = piece.index("expr:")
            assert piece[expression:].count(old) == 1, (name, old)
            changed = piece[:expression] + piece[expression:].replace(old, new)
            with tempfile.TemporaryDirectory() as folder:
                shutil.copy(TESTS, folder)
                with open(os.path.join(folder, "ledger.rules.yml"), "w", encoding="utf-8") as file:
                    file.write(text[:start] + changed + text[end:])
                assert run("check", "rules", "ledger.rules.yml", folder=folder).returncode == 0
                done = run("test", "rules", "ledger.test.yml", folder=folder)
                assert done.returncode != 0, (name, old, new)


def selectors(expression):
    text = re.sub(r"\[\w+\]", "", expression)
    for name, labels in SELECTOR.findall(text):
        if name not in WORDS:
            yield name, re.findall(r'(\w+)\s*[=!]~?="?', labels) or re.findall(r"(\w+)=", labels)


def every_series_is_one_of_ours():
    metrics = metric_tables()
    assert len(metrics) > 40, len(metrics)
    seen = set()
    for name, (expression, _) in rules().items():
        found = list(selectors(expression))
        assert found, name
        for metric, labels in found:
            base = metric[:-len("_bucket")] if metric.endswith("_bucket") else metric
            assert base in metrics, (name, metric)
            assert (metrics[base][0] == "HISTOGRAM") == (base != metric), (name, metric)
            for label in labels:
                assert label in metrics[base][1], (name, metric, label)
            seen.add(base)
    assert seen == {"committer_batch_latency_seconds", "queue_depth", "queue_capacity",
                    "busy_rejections_total", "tasks_leaked_total"}, seen
    with open(TESTS, encoding="utf-8") as file:
        for metric, labels in re.findall(r"series: (\w+)\{(.*)\}", file.read()):
            known = metrics[re.sub("_bucket$", "", metric)][1] + ["instance", "le"]
            assert set(re.findall(r'(\w+)="', labels)) <= set(known), (metric, labels)


def the_seed_s_metrics_are_exported():
    metrics = metric_tables()
    for name, label in METRICS.items():
        assert name in metrics, name
        assert label is None or label in metrics[name][1], (name, label)


CASES = [the_rules_are_valid, each_fires_and_only_then, they_are_the_four_of_the_seed,
         a_moved_threshold_is_noticed, every_series_is_one_of_ours,
         the_seed_s_metrics_are_exported]


def main():
    failed = 0
    print("1..%d" % len(CASES))
    for number, function in enumerate(CASES, 1):
        try:
            function()
            print("ok %d - %s" % (number, function.__name__), flush=True)
        except Exception as error:  # pylint: disable=broad-except
            failed += 1
            print("not ok %d - %s: %r" % (number, function.__name__, error), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
