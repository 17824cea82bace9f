"""Train on a k-anonymous table, serve raw rows: Protector in a scikit-learn pipeline, on Adult.

The model only learns from a release with k = 10. Later it predicts for raw rows, whose values are
first mapped to the released intervals.

The script expects ``uci/adult.parquet`` in the folder that SHOAL_DATA names, or in ``shared/data``
next to the repository. Without the table, it says so and ends.

    SHOAL_DATA=/path/to/tables python examples/serve_raw_rows.py
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import shoal as sh

FOLDER = os.environ.get("SHOAL_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data"
ADULT = Path(FOLDER) / "uci" / "adult.parquet"

QUASI_IDENTIFIERS = ["age", "sex", "race", "marital-status", "education", "native-country"]
OTHERS = ["workclass", "occupation", "hours-per-week", "capital-gain", "capital-loss"]


def main() -> None:
    if not ADULT.is_file():
        print("The Adult table was not found. Set SHOAL_DATA to the folder of tables.")
        return
    people = pl.read_parquet(ADULT)
    target = (people["income"].cast(pl.String).str.contains(">50K")).to_numpy()
    features = people.select(QUASI_IDENTIFIERS + OTHERS)
    train, test, y_train, y_test = train_test_split(features, target, random_state=0, test_size=0.3)

    plan = sh.Plan(
        [sh.Generalize("mondrian", k=10)],
        require=[sh.KAnonymity(10)],
        roles=sh.Roles(quasi_identifiers=QUASI_IDENTIFIERS, insensitive=OTHERS),
    )
    protected = make_pipeline(
        sh.Protector(plan, encode="midpoints"), HistGradientBoostingClassifier()
    )
    raw = make_pipeline(categories(), HistGradientBoostingClassifier())

    learned = {
        "raw rows": raw.fit(train, y_train),
        "a release with k = 10": protected.fit(train, y_train),
    }
    for name, model in learned.items():
        found = f1_score(y_test, model.predict(test))  # raw rows, also by the second model
        print(f"F1 of a model trained on {name}: {found:.3f}")

    stranger = test[:1].with_columns(pl.lit(104).cast(test["age"].dtype).alias("age"))
    print("a person of 104 years:", protected.predict(stranger).astype(int).tolist())


def categories() -> object:
    """Encode text as codes; keep numbers."""
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    return make_column_transformer((encoder, text_columns), remainder="passthrough")


def text_columns(frame: pl.DataFrame) -> list[str]:
    return [name for name in frame.columns if not frame[name].dtype.is_numeric()]


if __name__ == "__main__":
    main()
