# SPDX-License-Identifier: Apache-2.0
"""The GitHub Action, the GitLab template and the recipe of samples/ci: their steps are run as the servers run them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sweeps

pytest.importorskip("pyarrow", reason="a sweep writes its table with pyarrow")
yaml = pytest.importorskip("yaml", reason="the workflows are YAML")

CI = sweeps.SAMPLES / "ci"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the recipe, two models, and this Python as python."""
    (tmp_path / "models").mkdir()
    shutil.copy(sweeps.SAMPLES / "fault_pair" / "A.onnx", tmp_path / "models" / "pair.onnx")
    shutil.copytree(sweeps.SAMPLES / "recurrent", tmp_path / "models" / "recurrent")
    shutil.copy(CI / "moved.toml", tmp_path)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").write_text(f'#!/bin/sh\n[ "$2" = pip ] && echo "$@" >> pip.log && exit\nexec {sys.executable} "$@"\n')
    (tmp_path / "bin" / "python").chmod(0o755)
    keep = [sys.executable, "-m", "parallax.sweep", "moved.toml", "--save-baselines"]
    done = subprocess.run(keep, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.startswith("wrote 2 baselines into")
    return tmp_path


def break_model(project: Path) -> None:
    shutil.copy(sweeps.SAMPLES / "fault_pair" / "B.onnx", project / "models" / "pair.onnx")


def environment(project: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "PATH": f"{project / 'bin'}:{os.environ['PATH']}", **more}


def filled(text: str, inputs: dict[str, str]) -> str:
    return re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: inputs[found[1]], text)


def run_action(project: Path, **given: str) -> tuple[int, dict[str, str], str]:
    """Runs the action's steps; returns (exit code of the first that fails, the outputs, the summary)."""
    action = yaml.safe_load((CI / "action.yml").read_text())
    inputs = {name: given.get(name, row.get("default", "")) for name, row in action["inputs"].items()}
    assert set(given) <= set(inputs) and all(inputs[name] for name, row in action["inputs"].items() if row.get("required"))
    output, summary = project / "github_output", project / "github_summary"
    result = 0
    for step in action["runs"]["steps"]:
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step["uses"]) and step["if"] == "always()"
            kept = filled(step["with"]["path"], inputs).split()
            assert filled(step["with"]["name"], inputs) == given.get("artifact", "parallax-sweep")
            assert {Path(path).name for path in kept} == {"results.parquet", "overview.html", "junit.xml", "reports"}
            continue
        if result or ("if" in step and not inputs[re.fullmatch(r"inputs\.(\w+) != ''", step["if"])[1]]):  # type: ignore[index]
            continue
        assert step["shell"] == "bash" and "${{" not in step["run"]  # texts of others come by the environment alone
        variables = {name: filled(value, inputs) for name, value in step.get("env", {}).items()}
        script = project / "step.sh"
        script.write_text(step["run"])
        result = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)], cwd=project, timeout=300, check=False,
            env=environment(project, GITHUB_OUTPUT=str(output), GITHUB_STEP_SUMMARY=str(summary), **variables),
        ).returncode  # fmt: skip
    pairs = (line.partition("=") for line in output.read_text().splitlines())
    return result, {name: value for name, _, value in pairs}, summary.read_text()


def test_the_action_fails_where_an_intermediate_result_moved(project: Path) -> None:
    result, outputs, summary = run_action(project, spec="moved.toml", out="before", jobs="2")
    assert result == 0 and "2 cells, 2 computed now: 2 pass" in summary
    assert (project / outputs["table"]).exists() and (project / outputs["overview"]).exists()
    assert (project / "pip.log").read_text().split()[-1] == "parallax-onnx[sweep]"
    break_model(project)
    result, outputs, summary = run_action(project, spec="moved.toml", out="after", artifact="after", package="")
    assert result == 1 and "1 pass, 1 diverged" in summary and summary.count("```") == 4
    rows = {row["model"]: row for row in sweeps.table(project / "after")}
    assert rows["pair"]["first_node"] == "block1/depthwise_bn" and rows["recurrent"]["verdict"] == "pass"
    assert (project / "after" / str(rows["pair"]["report"])).exists()
    result, _, summary = run_action(project, spec="moved.toml", out="again", against="before", package="")
    assert result == 1 and "since before: 1 worse, 0 better, 1 same" in summary
    assert run_action(project, spec="moved.toml", out="later", against="after", package="")[0] == 0


def test_the_gitlab_template_gives_test_cases(project: Path) -> None:
    break_model(project)
    text = (CI / "gitlab-ci.yml").read_text()
    template: dict[str, Any] = yaml.safe_load(text)
    assert all(name.startswith(".") for name in template)  # an include adds no job of its own
    comment = "\n".join(line[2:] for line in text.splitlines() if line.startswith("#   "))
    example = yaml.safe_load(comment)["models-moved"]
    job = template[example["extends"]]
    variables = {**job["variables"], **example["variables"]}
    script = "\n".join([*job["before_script"], *job["script"]])
    done = subprocess.run(["sh", "-ec", script], cwd=project, env=environment(project, **variables), timeout=300, check=False)
    assert done.returncode == 1
    junit = (project / job["artifacts"]["reports"]["junit"]).read_text()
    assert 'tests="2" failures="1"' in junit and "block1/depthwise_bn" in junit
    assert all((project / path).exists() for path in job["artifacts"]["paths"])


def test_the_workflow_uses_the_action_as_it_is() -> None:
    workflow = yaml.safe_load((CI / "workflow.yml").read_text())
    steps = workflow["jobs"]["moved"]["steps"]
    ours = [step for step in steps if str(step["uses"]).startswith("./")]
    assert [step["uses"] for step in ours] == ["./samples/ci"]
    assert set(ours[0]["with"]) <= set(yaml.safe_load((CI / "action.yml").read_text())["inputs"])
    assert (sweeps.ROOT / ours[0]["with"]["spec"]).exists()
