"""Kill workers and drivers of a real Ray, at random, and count wrong bits: takes minutes, and is no test of the suite.

    python -m tests.cluster.kills --workers 30 --drivers 10

Every fit is of one of three learners. Workers die by SIGKILL at any moment of a fit, drivers too, and are started again
with the same checkpoint. What was learned must be, bit for bit, what one thread learns.
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

from tests.cluster.fits import FITS, learned

from slatewise import cluster

LEARNERS = ("margin map", "cstar likelihood", "matching slates")


def fit(name: str, **more: object) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return learned(FITS[name](**more))


def slowly(_: object) -> None:
    time.sleep(0.2)  # small fits would be over before anybody is killed


def workers_killed(times: int) -> dict[str, object]:
    """Fit again and again while somebody kills workers; one is back when it answers."""
    import ray

    expected, fits, wrong, back = {name: fit(name, n_threads=1) for name in LEARNERS}, 0, 0, []
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
                if killed < times and driver.poll() is None:
                    driver.kill()
                    killed += 1
                out = driver.communicate()[0].decode().strip()
                if driver.returncode == 0:
                    wrong += out.splitlines()[-1] != fit(name, n_threads=1)
                    break
        fits += 1
    return {"kills": killed, "fits": fits, "wrong": wrong, "until_a_new_round_most_s": max(again)}


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
    parser.add_argument("--fit", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fit:
        one_fit(*arguments.fit)
        return
    if arguments.workers:
        print("workers", json.dumps(workers_killed(arguments.workers)), flush=True)
    if arguments.drivers:
        print("drivers", json.dumps(drivers_killed(arguments.drivers)), flush=True)


if __name__ == "__main__":
    main()
