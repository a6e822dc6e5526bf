"""Uncertainty distillation (UDist): a network that learns how sure an ensemble was (CCC section 3).

    P̄ = mean of the members' probabilities
    P̃ = softmax(log P̄ / T)                                                         (CCC eq 2)
    s = network(image ⊕ P̃ as constant planes), trained towards P̃_t, t the actual class, by
    loss = -[P̃_t log s + (1 - P̃_t) log(1 - s)]                                     (CCC eq 3)

The paper prints eq 3 without the minus. At test time the actual class is not known, and s stands
in for the probability that the ensemble gives to it: the confidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from os import PathLike
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader

from raterwise.errors import InvalidInputError
from raterwise.inference.settings import Progress
from raterwise.progress_bar import reporting
from raterwise.rules import choose, positive, positive_integer
from raterwise.torch._inference import (
    Inputs,
    check_members,
    check_order,
    device_of,
    evaluating,
    reported_batches,
    seeded,
    total_cases,
)
from raterwise.torch._targets import confidence_loss, soft_target, soften, with_planes
from raterwise.torch._training import Data, Epoch, Training, digest, loader_of, pair_of

__all__ = ["Epoch", "UncertaintyDistillation", "confidence_loss", "soften", "with_planes"]

OptimizerFactory = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]
Augment = Callable[[Tensor], Tensor]


class UncertaintyDistillation:
    """A confidence network distilled from an ensemble.

    Parameters
    ----------
    members : sequence of Module
        The M trained classifiers; they stay as they are.
    network : Module
        The confidence network: any backbone that takes C + K channels and gives one score (a
        logit) per case, or one per finding.
    task : {"multiclass", "multilabel"}, default "multiclass"
        One class per case, or L findings that are present or not.
    train_temperature, test_temperature : float, default 8.0 and 3.0
        T of eq 2 when training and when predicting; the paper's for CIFAR-10.
    output : {"logits", "probabilities"}, default "logits"
        What the members return.
    seed : int, default 0
        Seed of the order of the cases and of anything random in the network.

    See Also
    --------
    torch.ensembles.mc_dropout : the samples of a teacher.
    confidence.auccc : what it should improve.

    Examples
    --------
    >>> members = [nn.Linear(4, 3) for _ in range(2)]
    >>> udist = UncertaintyDistillation(members, nn.Linear(4 + 3, 1))
    >>> images, classes = torch.randn(32, 4), torch.randint(3, (32,))
    >>> udist.fit((images, classes), epochs=2, progress=False).predict_confidence(images).shape
    (32,)
    """

    def __init__(
        self,
        members: Sequence[nn.Module],
        network: nn.Module,
        *,
        task: Literal["multiclass", "multilabel"] = "multiclass",
        train_temperature: float = 8.0,
        test_temperature: float = 3.0,
        output: Literal["logits", "probabilities"] = "logits",
        seed: int = 0,
    ) -> None:
        check_members(members, (nn.Module,))
        for name, value in (("train", train_temperature), ("test", test_temperature)):
            positive(f"{name}_temperature", value)
        self.members, self.network = list(members), network
        self.task = choose("task", task, ("multiclass", "multilabel"))
        self.output = choose("output", output, ("logits", "probabilities"))
        self.train_temperature = float(train_temperature)
        self.test_temperature = float(test_temperature)
        self.seed = positive_integer("seed", seed, least=0)
        self.history: list[Epoch] = []
        """The epochs of the last `fit`, those before a resumption included."""

    # the ensemble ----------------------------------------------------------------------------

    def ensemble_probabilities(self, images: Tensor, temperature: float = 1.0) -> Tensor:
        """Return P̃ of a batch (CCC eq 2).

        Parameters
        ----------
        images : Tensor
            (N, C, …).
        temperature : float, default 1.0
            T; with 1 it is P̄.

        Returns
        -------
        Tensor
            (N, K), or (N, L) for findings.

        >>> udist = UncertaintyDistillation([nn.Linear(4, 3)], nn.Linear(4 + 3, 1))
        >>> udist.ensemble_probabilities(torch.zeros(2, 4)).shape
        torch.Size([2, 3])
        """
        at = device_of(self.network)
        with torch.no_grad():
            outputs = []
            for member in self.members:
                with evaluating(member):
                    given = member(images.to(device_of(member)))
                    outputs.append(self._log_pair(given, self.output).to(at))
            log_mean = torch.stack(outputs).logsumexp(dim=0) - math.log(len(outputs))
            return self._soften(log_mean, temperature)

    def _soften(self, log_mean: Tensor, temperature: float) -> Tensor:
        softened = soften(log_mean, temperature)
        return softened[:, 0] if self.task == "multilabel" else softened

    def _log_pair(self, values: Tensor, output: str) -> Tensor:
        """Return log-probabilities over axis 1: the classes, or (present, absent) of findings."""
        values = values.float()
        if values.ndim != 2:
            raise InvalidInputError(
                f"members: must give (N, classes) for each batch; got {tuple(values.shape)}"
            )
        if self.task == "multiclass":
            if output == "logits":
                return values.log_softmax(dim=1)
            return values.clamp_min(torch.finfo(values.dtype).tiny).log()
        if output == "logits":
            pair = functional.logsigmoid(values), functional.logsigmoid(-values)
        else:
            tiny = torch.finfo(values.dtype).tiny
            pair = values.clamp_min(tiny).log(), (1 - values).clamp_min(tiny).log()
        return torch.stack(pair, dim=1)

    def soft_target(self, softened: Tensor, labels: Tensor) -> Tensor:
        """Return P̃_t: the softened probability of what is actually there.

        Parameters
        ----------
        softened : Tensor
            (N, K) or (N, L): P̃.
        labels : Tensor
            Classes (N,) or label counts (N, K), whose raters are averaged; for findings (N, L) of
            0 and 1, or the fraction of raters who saw each.

        Returns
        -------
        Tensor
            (N,), or (N, L) for findings.

        >>> udist = UncertaintyDistillation([nn.Linear(4, 2)], nn.Linear(4 + 2, 1))
        >>> udist.soft_target(torch.tensor([[0.7, 0.3]]), torch.tensor([1]))
        tensor([0.3000])
        """
        return soft_target(softened, labels.to(softened.device), findings=self.task == "multilabel")

    # training --------------------------------------------------------------------------------

    def fit(
        self,
        data: Data,
        validation: Data | None = None,
        *,
        epochs: int = 20,
        batch_size: int = 256,
        learning_rate: float = 1e-3,
        optimizer: OptimizerFactory | None = None,
        augment: Augment | None = None,
        patience: int | None = None,
        checkpoint: str | PathLike[str] | None = None,
        resume: bool = True,
        progress: bool | Progress = True,
    ) -> Self:
        """Train the confidence network.

        Parameters
        ----------
        data, validation : pair of Tensor, Dataset or DataLoader
            (images, labels), or pairs of such; `validation` is optional.
        epochs, batch_size, learning_rate : default 20, 256 and 0.001
            Settings of Adam; the rate is divided by ten after 1/2 and 3/4 of the epochs.
        optimizer : function, optional
            Another one: a function of the parameters.
        augment : function, optional
            Changes a batch of training images at random, on their device, before the members and
            the network see it.
        patience : int, optional
            Stop after so many epochs without a lower validation loss, and go back to the best.
        checkpoint : path, optional
            A file that is written after every epoch and read at the beginning where it exists.
            Training that was killed and begun again gives the digits of one that was not.
        resume : bool, default True
            Whether to go on from the checkpoint.
        progress : bool or function, default True
            Show a bar; False for none, or a function of (description, fraction).

        Returns
        -------
        UncertaintyDistillation
            Itself; `history` says how the epochs went.

        >>> udist = UncertaintyDistillation([nn.Linear(4, 3)], nn.Linear(4 + 3, 1))
        >>> images, classes = torch.randn(8, 4), torch.randint(3, (8,))
        >>> len(udist.fit((images, classes), epochs=2, progress=False).history)
        2
        """
        positive_integer("epochs", epochs)
        if not isinstance(data, DataLoader):
            positive_integer("batch_size", batch_size)
        if patience is not None:
            positive_integer("patience", patience)
        if patience is not None and validation is None:
            raise InvalidInputError("patience: needs validation data; got none")
        parameters = [p for p in self.network.parameters() if p.requires_grad]
        make = optimizer or (lambda p: torch.optim.Adam(p, lr=learning_rate))
        training = Training(
            make(parameters),
            {
                "task": self.task, "output": self.output, "seed": self.seed, "epochs": epochs,
                "train_temperature": self.train_temperature, "patience": patience,
                "batch_size": batch_size if not isinstance(data, DataLoader) else None,
                "learning_rate": None if optimizer else float(learning_rate),
                "members": [digest(member) for member in self.members],
            },
            checkpoint,
        )  # fmt: skip
        self.history = training.begin(self.network) if resume else []
        with reporting(progress) as report:
            one_epoch = partial(
                self._epoch,
                training.optimizer, data, validation, epochs, batch_size, augment, report,
            )  # fmt: skip
            training.go_on(self.network, self.history, epochs, one_epoch, patience=patience)
        training.finish(self.network, validation is not None)
        return self

    def _epoch(
        self,
        optimizer: torch.optim.Optimizer,
        data: Data,
        validation: Data | None,
        epochs: int,
        batch_size: int,
        augment: Augment | None,
        report: Progress,
        number: int,
    ) -> tuple[float, float | None]:
        """Learn from every case once; return the loss, and that of the validation data."""
        with seeded(self.seed, number, device=device_of(self.network)):
            loader = loader_of(data, batch_size, shuffle=True, epoch=number, seed=self.seed)
            self.network.train()
            train_loss = self._pass(loader, optimizer, number, epochs, report, augment)
            self.network.eval()
            if validation is None:
                return train_loss, None
            loader = loader_of(validation, batch_size, shuffle=False)
            with torch.no_grad():
                return train_loss, self._pass(loader, None, number, epochs, None)

    def _pass(
        self,
        loader: DataLoader[Any],
        optimizer: torch.optim.Optimizer | None,
        number: int,
        epochs: int,
        report: Progress | None,
        augment: Augment | None = None,
    ) -> float:
        """Go through the data once, learning where there is an optimiser; return the mean loss."""
        total, cases, known = 0.0, 0, total_cases(loader)
        for given, labels in map(pair_of, loader):
            images = given if augment is None else augment(given)
            softened = self.ensemble_probabilities(images, self.train_temperature)
            scores = self._scores(images, softened)
            loss = confidence_loss(scores, self.soft_target(softened, labels))
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
            total += loss.item() * len(images)
            cases += len(images)
            if report is not None:
                done = number + (min(cases / known, 1.0) if known else 0.0)
                report(f"Epoch {number + 1} of {epochs}, loss {total / cases:.4f}", done / epochs)
        if cases == 0:
            raise InvalidInputError("data: must hold at least one case; got none")
        return total / cases

    def _scores(self, images: Tensor, softened: Tensor) -> Tensor:
        given = with_planes(images.to(softened.device), softened)
        scores: Tensor = self.network(given)
        if self.task == "multiclass" and scores.ndim == 2 and scores.shape[1] == 1:
            scores = scores[:, 0]
        wanted = softened.shape if self.task == "multilabel" else softened.shape[:1]
        if scores.shape != wanted:
            raise InvalidInputError(
                f"network: must give {tuple(wanted)} scores for this batch; "
                f"got {tuple(scores.shape)}"
            )
        return scores

    # prediction ------------------------------------------------------------------------------

    def predict_confidence(
        self,
        inputs: Inputs,
        *,
        probabilities: Any = None,
        batch_size: int = 256,
        progress: bool | Progress = True,
    ) -> NDArray[np.float64]:
        """Return the confidence s of each case, (N,), or of each finding, (N, L).

        Parameters
        ----------
        inputs : Tensor or DataLoader
            Images (N, C, …), or batches of them in a fixed order.
        probabilities : array or Tensor, optional
            What `predict_proba` gives for the same cases in the same order, where that is there
            already: the members are not asked again.
        batch_size, progress : int, default 256; bool or function, default True
            As in `fit`.

        Returns
        -------
        array of shape (N,) or (N, L)
            In [0, 1].

        >>> udist = UncertaintyDistillation([nn.Linear(4, 3)], nn.Linear(4 + 3, 1))
        >>> udist.predict_confidence(torch.zeros(2, 4), progress=False).shape
        (2,)
        """
        known = None if probabilities is None else torch.as_tensor(np.asarray(probabilities))
        seen = 0

        def confidence(images: Tensor) -> Tensor:
            nonlocal seen
            seen += len(images)
            softened = self._softened(images, known, seen)
            return self._scores(images, softened).float().sigmoid()

        found = self._predict(inputs, batch_size, progress, confidence)
        if known is not None and len(known) != seen:
            raise InvalidInputError(
                f"probabilities: must have a row for each of {seen} cases; got {len(known)}"
            )
        return found

    def predict_proba(
        self, inputs: Inputs, *, batch_size: int = 256, progress: bool | Progress = True
    ) -> NDArray[np.float64]:
        """Return the ensemble's probabilities P̄, to which the confidence refers.

        Parameters
        ----------
        inputs, batch_size, progress : Tensor or DataLoader; int, default 256; default True
            As in `predict_confidence`.

        Returns
        -------
        array of shape (N, K) or (N, L)
            Probabilities.

        >>> udist = UncertaintyDistillation([nn.Linear(4, 3)], nn.Linear(4 + 3, 1))
        >>> udist.predict_proba(torch.zeros(2, 4), progress=False).shape
        (2, 3)
        """
        return self._predict(inputs, batch_size, progress, self.ensemble_probabilities)

    def _softened(self, images: Tensor, known: Tensor | None, seen: int) -> Tensor:
        """Return P̃ of a batch that ends with case `seen`, of known P̄ or of the members."""
        if known is None:
            return self.ensemble_probabilities(images, self.test_temperature)
        rows = known[seen - len(images) : seen]
        if len(rows) != len(images):
            raise InvalidInputError(
                f"probabilities: must have a row for each case; got {len(known)} for {seen} or more"
            )
        at = device_of(self.network)
        return self._soften(self._log_pair(rows.to(at), "probabilities"), self.test_temperature)

    def _predict(
        self,
        inputs: Inputs,
        batch_size: int,
        progress: bool | Progress,
        predict: Callable[[Tensor], Tensor],
    ) -> NDArray[np.float64]:
        check_order(inputs)
        with reporting(progress) as report, evaluating(self.network), torch.no_grad():
            given = reported_batches(inputs, batch_size, report, "Predicting")
            out = [predict(images).double().cpu() for images in given]
        return np.asarray(torch.cat(out).numpy())
