"""One measurement of one other package, run by its own interpreter: `peer_worker.py JOB PACKAGE IN.npz OUT.npz`.

Imports numpy and that package alone. Jobs:

    calibrate   IN: outcomes (R, N), d                 OUT: alpha (N, d), beta (N,), cpu_s, converged
    adaptive    IN: outcomes (A, N), alpha, beta, k    OUT: items (A, k), ms of CPU, all threads, of one step (choice
                                                            and update) in mid-run, the median
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

Arrays = dict[str, Any]
WARM_UP = 100  # outcomes before a step is timed, as in `speed`


def mirt_calibrate(given: Arrays) -> Arrays:
    """mirt's EM with its defaults, standard errors left out; slopes and intercepts read off the fitted curves."""
    mirt: Any = import_module("mirt")

    d = int(given["d"])
    outcomes = given["outcomes"].astype(int)
    found = mirt.fit_mirt(outcomes, model="2PL", n_factors=d, compute_standard_errors=False)
    points = np.vstack([np.zeros(d), np.eye(d)])
    p = np.array([[np.ravel(found.model.probability(point[None, :])) for point in points]])[0]
    logits = np.log(p) - np.log1p(-p)
    return {"alpha": (logits[1:] - logits[0]).T, "beta": -logits[0], "converged": bool(found.converged)}


def girth_calibrate(given: Arrays) -> Arrays:
    """girth's marginal maximum likelihood."""
    girth: Any = import_module("girth")

    data = given["outcomes"].astype(int).T
    if int(given["d"]) == 1:
        found = girth.twopl_mml(data)
        slope = np.asarray(found["Discrimination"])
        return {"alpha": slope[:, None], "beta": slope * np.asarray(found["Difficulty"]), "converged": True}
    found = girth.multidimensional_twopl_mml(data, int(given["d"]))
    return {
        "alpha": np.asarray(found["Discrimination"]),
        "beta": -np.ravel(np.asarray(found["Difficulty"])),
        "converged": True,
    }


def py_irt_calibrate(given: Arrays) -> Arrays:
    """py-irt's stochastic variational inference, 2,000 epochs as in its guide."""
    pandas: Any = import_module("pandas")
    IrtConfig: Any = import_module("py_irt.config").IrtConfig
    Dataset: Any = import_module("py_irt.dataset").Dataset
    IrtModelTrainer: Any = import_module("py_irt.training").IrtModelTrainer

    outcomes, d = given["outcomes"].astype(int), int(given["d"])
    names = [f"i{item}" for item in range(outcomes.shape[1])]
    table = pandas.DataFrame(outcomes, columns=names)
    table["subject"] = [f"r{run}" for run in range(len(outcomes))]
    data = Dataset.from_pandas(table, subject_column="subject", item_columns=names)
    config = IrtConfig(model_type="2pl" if d == 1 else "multidim_2pl", epochs=2000, dims=d, log_every=1000, seed=1)
    trainer = IrtModelTrainer(config=config, data_path=Path("."), dataset=data, verbose=False)
    trainer.train(device="cpu")
    best = trainer.best_params
    order = np.argsort([names.index(best["item_ids"][index]) for index in range(len(names))])
    slope = np.asarray(best["disc"]).reshape(len(names), -1)[order]
    difficulty = np.asarray(best["diff"]).reshape(len(names), -1)[order]
    return {"alpha": slope, "beta": (slope * difficulty).sum(axis=1), "converged": True}


def mirt_engine(alpha: np.ndarray, beta: np.ndarray, k: int) -> Any:
    """mirt's adaptive engine on a 2PL model with these numbers; D-optimal where d > 1."""
    mirt: Any = import_module("mirt")
    CATEngine: Any = import_module("mirt.cat").CATEngine
    MaxItemsMCATStop: Any = import_module("mirt.cat").MaxItemsMCATStop
    MaxItemsStop: Any = import_module("mirt.cat").MaxItemsStop
    MCATEngine: Any = import_module("mirt.cat").MCATEngine

    n, d = alpha.shape
    model = mirt.TwoParameterLogistic(n_items=n, n_factors=d)
    slopes = alpha if d > 1 else alpha[:, 0]
    zero = np.zeros(n)
    model.set_parameters(discrimination=slopes, difficulty=zero)
    # How a difficulty enters differs between d = 1 and d > 1: found from the model itself.
    model.set_parameters(discrimination=slopes, difficulty=zero + 1.0)
    p = np.ravel(model.probability(np.zeros((1, d))))
    per_unit = np.log(p) - np.log1p(-p)
    some = np.abs(per_unit) > 1e-9  # an item without any slope has no place for a difficulty
    model.set_parameters(discrimination=slopes, difficulty=np.divide(-beta, per_unit, out=zero.copy(), where=some))
    model._is_fitted = True  # the parameters are given, which its engines would refuse
    if d == 1:
        return CATEngine(model, item_selection="MFI", stopping_rule=MaxItemsStop(k), max_items=k)
    return MCATEngine(model, item_selection="D-optimality", stopping_rule=MaxItemsMCATStop(k), max_items=k)


def mirt_run(outcomes: np.ndarray, engine: Any, k: int) -> tuple[list[int], list[float]]:
    """Items and CPU seconds of each step of one run."""
    engine.reset()
    state, items, spent = engine.get_current_state(), [], []
    for _ in range(k):
        item = int(state.next_item)
        items.append(item)
        start = time.process_time()
        state = engine.administer_item(int(outcomes[item]))
        spent.append(time.process_time() - start)
    return items, spent


def catsim_run(outcomes: np.ndarray, alpha: np.ndarray, beta: np.ndarray, k: int) -> tuple[list[int], list[float]]:
    """Maximum information and numerical maximum likelihood, catsim's usual pair."""
    NumericalSearchEstimator: Any = import_module("catsim.estimation").NumericalSearchEstimator
    ItemBank: Any = import_module("catsim.item_bank").ItemBank
    MaxInfoSelector: Any = import_module("catsim.selection").MaxInfoSelector

    slope = np.maximum(alpha[:, 0], 0.05)
    bank = ItemBank(np.column_stack([slope, beta / slope, np.zeros(len(beta)), np.ones(len(beta))]))
    selector, estimator = MaxInfoSelector(), NumericalSearchEstimator()
    items: list[int] = []
    answers: list[bool] = []
    spent, theta = [], 0.0
    for _ in range(k):
        start = time.process_time()
        item = int(selector.select(item_bank=bank, administered_items=items, est_theta=theta))
        items.append(item)
        answers.append(bool(outcomes[item]))
        theta = float(
            estimator.estimate(item_bank=bank, administered_items=items, response_vector=answers, est_theta=theta)
        )
        spent.append(time.process_time() - start)
    return items, spent


def adaptivetesting_run(
    outcomes: np.ndarray, alpha: np.ndarray, beta: np.ndarray, k: int
) -> tuple[list[int], list[float]]:
    """Maximum information and Bayes modal estimation."""
    TestAssembler: Any = import_module("adaptivetesting.implementations").TestAssembler
    BayesModal: Any = import_module("adaptivetesting.math.estimators").BayesModal
    NormalPrior: Any = import_module("adaptivetesting.math.estimators").NormalPrior
    ItemPool: Any = import_module("adaptivetesting.models").ItemPool

    slope = np.maximum(alpha[:, 0], 0.05)
    pool = ItemPool.load_from_list(a=slope.tolist(), b=(beta / slope).tolist(), ids=list(range(len(beta))))
    test = TestAssembler(
        pool,
        "study",
        "run",
        ability_estimator=BayesModal,
        estimator_args={"prior": NormalPrior(0, 1), "optimization_interval": (-10, 10)},
        simulation=False,
    )
    test.get_response = lambda item: int(outcomes[item.id])
    spent = []
    for _ in range(k):
        start = time.process_time()
        test.run_test_once()
        spent.append(time.process_time() - start)
    return [int(item.id) for item in test.answered_items], spent


def run_of(package: str, given: Arrays, k: int) -> Callable[[np.ndarray], tuple[list[int], list[float]]]:
    """What runs one agent with this package."""
    alpha, beta = given["alpha"], given["beta"]
    if package == "mirt":
        engine = mirt_engine(alpha, beta, k)
        return lambda outcomes: mirt_run(outcomes, engine, k)
    one = catsim_run if package == "catsim" else adaptivetesting_run
    return lambda outcomes: one(outcomes, alpha, beta, k)


def main(job: str, package: str, source: str, target: str) -> None:
    """Do the job and write what it gave."""
    with np.load(source) as loaded:
        given = dict(loaded)
    if job == "calibrate":
        calibrate = {"mirt": mirt_calibrate, "girth": girth_calibrate, "py-irt": py_irt_calibrate}[package]
        start = time.process_time()
        found = calibrate(given)
        found["cpu_s"] = time.process_time() - start
    else:
        k = int(given["steps"])
        run = run_of(package, given, k)
        outcomes = np.atleast_2d(given["outcomes"])
        runs = [run(row) for row in outcomes]
        found = {
            "items": np.array([items for items, _ in runs]),
            "ms": 1e3 * float(np.median([spent[min(WARM_UP, k // 2) :] for _, spent in runs])),
        }
    np.savez(target, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
