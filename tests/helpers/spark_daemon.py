"""Spark's parent of Python workers, with all that they import: loaded once, not once a worker."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pyspark.sql.pandas.serializers
import pyspark.worker
from pyspark.daemon import manager

import dpcov.core.queries.gram
import dpcov.paper.queries.group_grams
import dpcov.sources.spark

LOADED = (pd, pa, pyspark, dpcov)

if __name__ == "__main__":
    manager()
