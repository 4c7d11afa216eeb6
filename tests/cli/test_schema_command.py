"""``dpcov schema``, and a release of a table of words and dates."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from helpers.command_line import run

import dpcov

ROWS = 20_000


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pl.DataFrame:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    regions = rng.choice(["north", "south", "east"], ROWS)
    age = rng.integers(20, 80, ROWS)
    frame = pl.DataFrame({
        "person_id": np.arange(ROWS),
        "age": age,
        "region": regions,
        "late": rng.choice(["t", "f"], ROWS),
        "wage": 20 + 0.5 * age + 10 * (regions == "south") + rng.normal(size=ROWS),
    })  # fmt: skip
    frame.write_parquet("people.parquet")
    frame.write_csv("people.csv")
    return frame


def test_a_template_is_filled_in_and_released(people: pl.DataFrame) -> None:
    printed = run("dpcov schema people.parquet")
    assert printed.exit_code == 0, printed.stderr
    assert tomllib.loads(printed.stdout) == {
        "columns": {"age": {"kind": "number"}, "wage": {"kind": "number"}}
    }
    filled = printed.stdout.replace('"...", "..."', '"north", "south"', 1).replace("# region", "region")
    filled = filled.replace('# late = { kind = "category", levels = ["...", "..."] }', 'late = "flag"')
    Path("people.toml").write_text(filled)
    found = {}
    for file in ("people.parquet", "people.csv"):
        line = f"dpcov release {file} --schema people.toml --rho 1 --bounds age=0:100 -o people.dpcov"
        made = run(f"{line} --terms age^2,age:region --seed 3 --not-private --overwrite")
        assert made.exit_code == 0, made.stderr
        assert "% of rows complete (" in made.stdout
        found[file] = dpcov.load("people.dpcov")
    one, other = found.values()
    assert one.columns == (
        "age", "region[south]", "region[other]", "late", "wage", "age^2", "age:region[south]",
        "age:region[other]",
    )  # fmt: skip
    assert (one.second_moment().values == other.second_moment().values).all()
    assert one.encoding == other.encoding
    assert one.encoding is not None
    assert one.encoding.kinds[0] == dpcov.number(0, 100)
    slopes = one.regress("wage ~ age + C(region)").coefficients
    assert abs(slopes["region[south]"] - 10) < 1
    assert abs(one.mean()["late"] - (people["late"].to_numpy() == "t").mean()) < 0.02


def test_what_is_chosen_from_a_schema_must_be_in_it(people: pl.DataFrame) -> None:
    del people
    Path("people.toml").write_text('[columns]\nage = "number"\nlate = "flag"\n')
    line = "dpcov release people.csv --schema people.toml --rho 1 --dry-run"
    assert json.loads(run(f"{line} --json").stdout)["columns"] == ["age", "late"]
    assert json.loads(run(f"{line} --columns late --json").stdout)["columns"] == ["late"]
    wrong = run(f"{line} --columns lat")
    assert (wrong.exit_code, "Did you mean 'late'" in wrong.stderr) == (2, True)
    wrong = run(f"{line} --bounds age=0-100")
    assert (wrong.exit_code, "COLUMN=LOWER:UPPER" in wrong.stderr) == (2, True)


def test_a_csv_file_tells_names_alone(people: pl.DataFrame) -> None:
    del people
    printed = run("dpcov schema people.csv --header").stdout
    assert '# age = { kind = "number" }' in printed
    Path("rows.csv").write_text("Ada,1815\nCharles,1791\n")
    refused = run("dpcov schema rows.csv --header")
    assert (refused.exit_code, "Ada" in refused.stderr) == (2, False)
    # Words alone look like names: nobody but who has seen the file can tell.
    Path("words.csv").write_text("Ada,London,positive\nCharles,London,negative\n")
    refused = run("dpcov schema words.csv")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "person's record" in " ".join(refused.stderr.split())
    for line in ("--columns age", "--columns London,age", "--columns posi", ""):
        refused = run(f"dpcov release words.csv {line} --rho 1 -o out.dpcov")
        assert refused.exit_code == 2
        said = refused.stdout + refused.stderr
        assert not any(word in said.replace(line, "") for word in ("Ada", "London", "positive"))


def test_nothing_usable_is_said_at_once(people: pl.DataFrame) -> None:
    del people
    # Words of yes and no that are read as numbers: every row misses a value.
    made = run("dpcov release people.csv --columns late,age --rho 1 -o out.dpcov")
    assert made.exit_code == 6
    assert "nothing in this release stands above the noise" in made.stderr
    assert "its cost stays charged" in made.stderr
    shown = run("dpcov ask out.dpcov summary")
    assert shown.exit_code == 0, shown.stderr
    assert "Hidden:    nothing" not in shown.stdout
    with pytest.warns(dpcov.opening.NothingUsableWarning, match="nothing in this release"):
        dpcov.release("people.csv", columns=["late", "age"], rho=1)


def test_pairs_of_columns_with_gaps(people: pl.DataFrame) -> None:
    gaps = pl.when(pl.col("person_id") % 3 == 0).then(None).otherwise(pl.col("wage")).alias("wage")
    people.with_columns(gaps).write_csv("gaps.csv")
    Path("gaps.toml").write_text('[columns]\nage = { kind = "number", gaps = false }\nwage = "number"\n')
    made = run(
        "dpcov release gaps.csv --schema gaps.toml --missing pairwise --rho 1 -o gaps.dpcov --seed 3 "
        "--not-private"
    )
    assert made.exit_code == 0, made.stderr
    assert "% of rows with wage (" in made.stdout
    told = json.loads(run("dpcov ask gaps.dpcov summary --json").stdout)
    assert told["missing"] == "pairwise"
    assert told["columns"] == ["age", "wage"]
    described = json.loads(run("dpcov ask gaps.dpcov describe --json").stdout)
    estimates = [found["estimate"] for found in described["rows"]["values"]]
    assert estimates == pytest.approx([ROWS, ROWS * 2 / 3], rel=0.05)
    assert run("dpcov release gaps.csv --schema gaps.toml --missing some --rho 1 -o x.dpcov").exit_code == 2
