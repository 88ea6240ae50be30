"""Estimated totals and means where rows may have been shed, with their standard errors."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.pipelines.functions.bound_totals import BoundMean, BoundTotal
from tidegate.pipelines.functions.columns import Mask, nullable, valid, values_of
from tidegate.pipelines.functions.fold import Columns, Groups
from tidegate.pipelines.functions.merges import Merges
from tidegate.pipelines.functions.summand import Summand


@dataclass(frozen=True, slots=True)
class BoundEstimate:
    """A total or a mean estimated from the rows that were kept, with its standard error.

    Every row was kept independently with probability 1 / w, so the variance of an estimate is
    estimated by the sum of w (w - 1) y^2 over the kept rows: y is 1 for a count, x for a sum and
    (x - mean) / (sum of w) for a mean (Horvitz and Thompson 1952; for the mean by linearisation).
    """

    inner: BoundTotal | BoundMean
    spreads: tuple[Summand, ...]
    """Sums of w (w - 1) y^2; for a mean, of w (w - 1) times 1, x and x^2."""

    @property
    def name(self) -> str:
        """The estimate's name; its standard error has the suffix `_se`."""
        return self.inner.name

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns of the rows that it reads."""
        names = (name for part in (self.inner, *self.spreads) for name in part.needs)
        return tuple(dict.fromkeys(names))

    @property
    def _spread_fields(self) -> tuple[pa.Field, ...]:
        return tuple(
            pa.field(f"{self.name}__spread{power or ''}", pa.float64())
            for power in range(len(self.spreads))
        )

    @property
    def state(self) -> tuple[pa.Field, ...]:
        """The estimate's state, and the sums for its variance."""
        return (*self.inner.state, *self._spread_fields)

    @property
    def result(self) -> tuple[pa.Field, ...]:
        """The estimate and its standard error."""
        return (*self.inner.result, pa.field(f"{self.name}_se", pa.float64()))

    @property
    def merges(self) -> Merges:
        """Weights are floats."""
        return Merges.NEVER

    def exact(self, rows: pa.Table) -> bool:
        """Never."""
        return False

    def add(self, groups: Groups) -> Columns:
        """Add the rows to the earlier sums."""
        pairs = zip(self._spread_fields, self.spreads, strict=True)
        spreads = {
            field.name: pa.array(spread.total(groups, field.name)[0]) for field, spread in pairs
        }
        return {**self.inner.add(groups), **spreads}

    def results(self, columns: Columns) -> list[pa.Array]:
        """The estimate and its standard error; null if there is no value."""
        results = self.inner.results(columns)
        spreads = [values_of(columns[field.name]) for field in self._spread_fields]
        present = valid(results[0])
        here: Mask = np.ones(len(results[0]), dtype=np.bool_) if present is None else present
        if isinstance(self.inner, BoundTotal):
            error = np.sqrt(np.maximum(spreads[0], 0.0))
        else:
            mean = values_of(results[0])
            weight = values_of(columns[self.inner.state[0].name])
            variance = spreads[2] - 2.0 * mean * spreads[1] + mean**2 * spreads[0]
            root = np.sqrt(np.maximum(variance, 0.0))
            error = np.divide(root, weight, out=np.zeros(len(root)), where=here)
        return [*results, nullable(error, here)]
