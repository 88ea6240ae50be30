"""The predictions of river's Hoeffding tree on the same stream: what ours are measured against.

It has the same parameters and predicts the majority of a leaf as well. Its splits count at once,
and it describes a numeric attribute by a normal distribution for each class.
"""

from river.tree import HoeffdingTreeClassifier

from tidegate.apps.vht.instances import Instances
from tidegate.apps.vht.options import DELTA, TIE
from tidegate.apps.vht.packed import Ints, level_of


def river_predictions(instances: Instances, seq: Ints) -> list[int]:
    """Predict each instance, then learn from it, in their order."""
    options = instances.options
    tree = HoeffdingTreeClassifier(
        grace_period=options.grace, delta=DELTA, tau=TIE, leaf_prediction="mc"
    )
    levels = instances.levels(seq)
    columns = [level_of(levels, one).astype(float).tolist() for one in range(options.attributes)]
    found = []
    for row, label in zip(zip(*columns, strict=True), instances.labels(seq).tolist(), strict=True):
        known = dict(enumerate(row))
        found.append(int(tree.predict_one(known) or 0))
        tree.learn_one(known, label)
    return found
