"""A network trained with differential privacy: a comparison that does not mask any data."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin

from shoal.utility.models._columns import Floats


def dp_sgd_network(**parameters: Any) -> DpSgdClassifier:
    """An unfitted network; raises ImportError if opacus or torch is not installed."""
    import opacus  # noqa: F401
    import torch  # noqa: F401

    return DpSgdClassifier(**parameters)


@dataclass(eq=False, kw_only=True, repr=False)
class DpSgdClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A network of one hidden layer whose gradients are clipped and made noisy.

    Training is (ε, δ)-differentially private in its rows: someone who sees the model learns
    little about whether a person's row was among them. The noise is as large as ε requires for all
    epochs together (accounted by Rényi differential privacy). This does not cover the earlier
    scaling of columns and the names of categories, nor the numbers of rows and classes. The noise
    does not come from a cryptographic generator: use this to measure the value of such a model,
    not to release one.

    Parameters
    ----------
    epsilon : float
        The privacy budget.
    delta : float
        The chance that the budget does not hold; well below one divided by the number of rows.
    hidden : int
        The width of the hidden layer.
    epochs : int
        How many times every row is used, on average.
    batch_size : int
        The number of rows per step, on average.
    max_grad_norm : float
        The length to which the gradient of a row is clipped.
    learning_rate : float
        The length of a step.
    random_state : int, optional
        A seed that reproduces the network.

    Attributes
    ----------
    noise_ : float
        The standard deviation of the noise, as a multiple of ``max_grad_norm``.
    spent_ : float
        The ε that the training used.

    References
    ----------
    Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar, Zhang (2016), Deep learning with differential
    privacy <https://doi.org/10.1145/2976749.2978318>, Algorithm 1. Papernot, Thakurta, Song, Chien,
    Erlingsson (2021), Tempered sigmoid activations for deep learning with differential privacy
    <https://arxiv.org/abs/2007.14191> (the hyperbolic tangent).
    """

    epsilon: float = 1.0
    delta: float = 1e-5
    hidden: int = 32
    epochs: int = 20
    batch_size: int = 64
    max_grad_norm: float = 1.0
    learning_rate: float = 0.5
    random_state: int | None = None

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> DpSgdClassifier:
        """Train on rows and their classes."""
        import torch

        rows = torch.as_tensor(np.asarray(X, np.float32))
        self.classes_, labels = np.unique(np.asarray(y), return_inverse=True)
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            # about its hooks, and about the generator, which is not cryptographic (see above)
            warnings.simplefilter("ignore", UserWarning)
            if self.random_state is None:
                torch.seed()
            else:
                torch.manual_seed(self.random_state)
            self._train(rows, torch.as_tensor(labels.astype(np.int64)))
        return self

    def _train(self, rows: Any, labels: Any) -> None:
        import torch
        from opacus import PrivacyEngine
        from torch.utils.data import DataLoader, TensorDataset

        network = torch.nn.Sequential(
            torch.nn.Linear(rows.shape[1], self.hidden),
            torch.nn.Tanh(),
            torch.nn.Linear(self.hidden, len(self.classes_)),
        )
        engine = PrivacyEngine(accountant="rdp")
        private, optimizer, batches = engine.make_private_with_epsilon(
            module=network,
            optimizer=torch.optim.SGD(network.parameters(), lr=self.learning_rate),
            data_loader=DataLoader(
                TensorDataset(rows, labels), batch_size=min(self.batch_size, len(rows))
            ),
            target_epsilon=self.epsilon,
            target_delta=self.delta,
            epochs=self.epochs,
            max_grad_norm=self.max_grad_norm,
        )
        loss = torch.nn.CrossEntropyLoss()
        for _ in range(self.epochs):
            for some, theirs in batches:
                optimizer.zero_grad()
                loss(private(some), theirs).backward()
                optimizer.step()
        self.noise_ = float(optimizer.noise_multiplier)
        self.spent_ = float(engine.get_epsilon(self.delta))
        self.network_ = network.eval()

    def predict_proba(self, X: npt.ArrayLike) -> Floats:
        """The probability of each class for each row, according to the network."""
        import torch

        with torch.no_grad():
            found = self.network_(torch.as_tensor(np.asarray(X, np.float32)))
            return np.asarray(torch.softmax(found, dim=1).numpy(), np.float64)

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The most probable class of each row."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])
