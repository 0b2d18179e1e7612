"""Kill workers and drivers of a real Ray, at random, and count wrong bits: takes minutes, and is no test of the suite.

    python -m tests.cluster.kills --workers 30 --drivers 10 --batches 10

Every fit is of one of three learners. Workers die by SIGKILL at any moment of a fit, drivers too, and are started again
with the same checkpoint. What was learned must be, bit for bit, what one thread learns. Batch answers are killed too,
workers and drivers in turn, and started again with the same command, until their lines are those of the model itself.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np
from tests.cluster.fits import FITS, learned

from slatewise import cluster

LEARNERS = ("margin map", "cstar", "matching slates")


def fit(name: str, **more: object) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return learned(FITS[name](**more))


def slowly(_: object) -> None:
    time.sleep(0.2)  # small fits would be over before anybody is killed


def workers_killed(times: int) -> dict[str, object]:
    """Fit again and again while somebody kills workers; one is back when it answers."""
    import ray

    expected, fits, wrong, back = {name: fit(name, n_jobs=1) for name in LEARNERS}, 0, 0, []
    with cluster.ray(workers=2) as opened:
        pids = [ray.get(actor.about.remote()).pid for actor in opened.actors]
        done = threading.Event()

        def kill() -> None:
            while len(back) < times:
                time.sleep(random.uniform(0.1, 1.5))
                at = random.randrange(2)
                os.kill(pids[at], signal.SIGKILL)
                start = time.perf_counter()
                while True:
                    try:
                        pids[at] = ray.get(opened.actors[at].about.remote()).pid
                        break
                    except ray.exceptions.RayActorError:
                        time.sleep(0.05)
                back.append(time.perf_counter() - start)
            done.set()

        threading.Thread(target=kill, daemon=True).start()
        while not done.is_set():
            name = LEARNERS[fits % len(LEARNERS)]
            wrong += fit(name, callbacks=[slowly]) != expected[name]
            fits += 1
    found = sorted(back)
    return {
        "kills": len(back),
        "fits": fits,
        "wrong": wrong,
        "back_median_s": found[len(found) // 2],
        "back_most_s": found[-1],
    }


def drivers_killed(times: int) -> dict[str, object]:
    """Start fits with a checkpoint in processes of their own, kill these, and start them again until they end."""
    killed, fits, wrong, again = 0, 0, 0, []
    while killed < times:
        name = LEARNERS[fits % len(LEARNERS)]
        with tempfile.TemporaryDirectory() as folder:
            checkpoint, rounds = Path(folder) / "fit.ckpt", Path(folder) / "rounds"
            while True:
                start, seen = time.perf_counter(), rounds.stat().st_size if rounds.exists() else 0
                driver = subprocess.Popen(
                    [sys.executable, "-m", "tests.cluster.kills", "--fit", name, str(checkpoint), str(rounds)],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
                while driver.poll() is None and (not rounds.exists() or rounds.stat().st_size == seen):
                    time.sleep(0.02)
                again.append(time.perf_counter() - start)  # until the first round that is new
                time.sleep(random.uniform(0.0, 0.5))
                if killed < times * (fits + 1) / len(LEARNERS) and driver.poll() is None:
                    driver.kill()  # each learner has its share of them
                    killed += 1
                out = driver.communicate()[0].decode().strip()
                if driver.returncode == 0:
                    wrong += out.splitlines()[-1] != fit(name, n_jobs=1)
                    break
        fits += 1
    return {"kills": killed, "fits": fits, "wrong": wrong, "until_a_new_round_most_s": max(again)}


N_ITEMS, N_QUERIES, N_PARTITIONS, TOP = 20_000, 200_000, 40, 10


def ranked(folder: str) -> None:
    """Rank in batches, and say who the workers are, so that they can be killed."""
    import ray

    with cluster.ray(workers=2) as opened:
        pids = [ray.get(actor.about.remote()).pid for actor in opened.actors]
        (Path(folder) / "pids").write_text(" ".join(map(str, pids)))
        print(cluster.rank(opened, f"{folder}/model.safetensors", f"{folder}/in", f"{folder}/out", TOP))


def batches_killed(times: int) -> dict[str, object]:
    """Rank while workers and drivers are killed in turn; count lines that are lost, doubled or wrong."""
    import pyarrow.parquet

    from slatewise import LatentRanker
    from slatewise.data.parquet import write_columns

    items = np.arange(N_ITEMS)
    settings = {"n_components": 32, "epochs": 1, "learning_rate": 0.1, "max_norm": 1.0, "random_state": 0}
    model = LatentRanker(**settings, engine="sampled", validation_fraction=0.0).fit(items, np.roll(items, 1))
    queries = np.random.default_rng(0).integers(0, N_ITEMS, N_QUERIES)
    # On some processors the last digit of a score depends on the queries beside it: each partition is asked alone.
    asked = [model.rank(part, TOP) for part in np.array_split(queries, N_PARTITIONS)]
    ids, scores = (np.concatenate([getattr(one, name).ravel() for one in asked]) for name in ("ids", "scores"))
    killed, wrong, runs, lines = {"workers": 0, "drivers": 0}, 0, 0, 0
    while sum(killed.values()) < times:
        with tempfile.TemporaryDirectory() as folder:
            model.save(f"{folder}/model.safetensors")
            (Path(folder) / "in").mkdir()
            for at, part in enumerate(np.array_split(queries, N_PARTITIONS)):
                write_columns(Path(folder) / "in" / f"{at:04d}.parquet", {"query": part})
            while True:
                done = len(list(Path(folder).glob("out/part-*")))
                driver = subprocess.Popen(
                    [sys.executable, "-m", "tests.cluster.kills", "--ranked", folder],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                while driver.poll() is None and len(list(Path(folder).glob("out/part-*"))) == done:
                    time.sleep(0.01)
                while driver.poll() is None and sum(killed.values()) < times:
                    time.sleep(random.uniform(0.1, 0.6))
                    if driver.poll() is None:
                        who = "workers" if killed["workers"] <= killed["drivers"] else "drivers"
                        if who == "workers":
                            pid = int(random.choice((Path(folder) / "pids").read_text().split()))
                            try:
                                os.kill(pid, signal.SIGKILL)
                            except ProcessLookupError:  # killed before
                                continue
                        else:
                            driver.kill()
                        killed[who] += 1
                if driver.wait() == 0:
                    break
            parts = sorted(Path(folder).glob("out/part-*.parquet"))
            table = pyarrow.concat_tables([pyarrow.parquet.read_table(path) for path in parts])
            lines, runs = table.num_rows, runs + 1
            wrong += not (
                lines == N_QUERIES * TOP
                and np.array_equal(table["qid"].to_numpy(), np.repeat(queries, TOP))
                and np.array_equal(table["doc_id"].to_numpy(), ids)
                and np.array_equal(table["score"].to_numpy(), scores)
            )
    return {**killed, "runs": runs, "lines_of_a_run": lines, "runs_with_wrong_lines": wrong}


def one_fit(name: str, checkpoint: str, rounds: str) -> None:
    def tell(_: object) -> None:
        with open(rounds, "a") as file:
            file.write(".")
        time.sleep(0.1)

    with cluster.ray(workers=2):
        print(fit(name, checkpoint=checkpoint, callbacks=[tell]))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.kills", description=__doc__)
    parser.add_argument("--workers", type=int, default=30, help="how often to kill a worker")
    parser.add_argument("--drivers", type=int, default=10, help="how often to kill a driver")
    parser.add_argument("--batches", type=int, default=10, help="how often to kill a worker or driver of batch answers")
    parser.add_argument("--fit", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--ranked", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fit:
        one_fit(*arguments.fit)
        return
    if arguments.ranked:
        ranked(arguments.ranked)
        return
    if arguments.workers:
        print("workers", json.dumps(workers_killed(arguments.workers)), flush=True)
    if arguments.drivers:
        print("drivers", json.dumps(drivers_killed(arguments.drivers)), flush=True)
    if arguments.batches:
        print("batches", json.dumps(batches_killed(arguments.batches)), flush=True)


if __name__ == "__main__":
    main()
