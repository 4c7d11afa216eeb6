"""No claim is exceeded, and every mutant is caught: queries, methods, parameters, the command line.

``DPCOV_AUDIT_SHARE`` makes for fewer runs: 0.1 runs a tenth, which proves less and lets mutants escape.
"""

from __future__ import annotations

import os
from dataclasses import asdict

import numpy as np
import pytest
from audit.cases import CASES, CASES_OF, to_be_audited
from audit.harness import CONFIDENCE, Case, Claim, Finding, judge, run_case
from audit.mutants import MUTANTS
from audit.record import record

SHARE = float(os.environ.get("DPCOV_AUDIT_SHARE", "1"))
# The first three double the loss, and do not quadruple it: that takes more runs. Others are seen at once.
FACTORS = {
    "no sqrt 2": 6.0,
    "one release too few": 6.0,
    "asked twice, paid once": 3.0,
    "no clipping": 0.25,
    "rows clipped alone": 0.25,
    "joint bound doubled": 0.25,
    "sort left out": 0.25,
    "no bounds": 0.25,
    "rare results shown": 0.25,
    "hardly any noise": 0.25,
    "moment without noise": 0.25,
    "directions without noise": 0.25,
    "seeded generator reused": 0.125,
}
LEAST_RUNS = 500


def runs_of(case: Case, mutant: str = "") -> int:
    most = case.mutant_runs if mutant and case.mutant_runs else case.runs
    runs = max(min(most, LEAST_RUNS), most * FACTORS.get(mutant, 1.0))
    return max(50, int(runs * SHARE))


@pytest.mark.audit
@pytest.mark.parametrize("name", CASES)
def test_no_event_refutes_the_claim(name: str) -> None:
    case = CASES[name]
    finding = run_case(case, runs_of(case))
    record("claims", name, claim=str(case.claim), neighbours=case.neighbours, note=case.note,
           confidence=CONFIDENCE, **asdict(finding))  # fmt: skip
    assert not finding.exceeded


@pytest.mark.audit
@pytest.mark.parametrize(
    ("name", "mutant"), [(case.name, mutant) for case in CASES.values() for mutant in case.mutants]
)
def test_a_mutant_is_caught(name: str, mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[name]
    broken = MUTANTS[mutant](monkeypatch, case.program)
    finding = run_case(case, runs_of(case, mutant), broken)
    record("mutants", f"{name}: {mutant}", **asdict(finding))
    assert finding.exceeded


def test_everything_private_has_a_case_and_every_case_a_mutant() -> None:
    assert set(CASES_OF) == to_be_audited()
    assert sum(len(cases) for cases in CASES_OF.values()) == len(CASES)
    assert all(case.mutants and set(case.mutants) <= set(MUTANTS) for case in CASES.values())


def gaussian_samples(shift: float, runs: int = 4000) -> Finding:
    draw = np.random.default_rng(0).normal
    return judge(draw(size=(runs, 1)), draw(size=(runs, 1)) + shift, Claim(rho=CASES["gram"].claim.rho))


def test_the_judge_accepts_what_is_claimed_and_rejects_twice_the_shift() -> None:
    # A shift of s costs s^2 / 2. A true claim is rejected with probability below 1e-4.
    assert not gaussian_samples(np.sqrt(2)).exceeded
    assert gaussian_samples(2 * np.sqrt(2)).exceeded


def test_the_judge_finds_a_probability_that_only_one_neighbour_has() -> None:
    one, other = np.zeros((2000, 1)), np.zeros((2000, 1))
    other[::10] = 1.0
    assert judge(one, other, Claim(epsilon=CASES["gram"].claim.rho)).exceeded
    assert not judge(one, one, Claim(epsilon=CASES["gram"].claim.rho)).exceeded


@pytest.mark.parametrize("name", CASES)
def test_every_program_answers(name: str) -> None:
    # One that always refuses would keep every claim. A search for m is over at its first step on most tables.
    answers = {tuple(CASES[name].program(CASES[name].one)) for _ in range(40 if "search" in name else 6)}
    assert len(answers) > 1
