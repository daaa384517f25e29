"""Numbers of batch jobs, as Slurm's users expect them: counted in a ConfigMap of the namespace. And jobs by number."""

from __future__ import annotations

import re
from typing import Final

from volcano.api.errors import AlreadyExists, ApiError, Conflict, NotFound
from volcano.api.jobs.dependencies import ARRAY_INDEX_KEY, ARRAY_KEY
from volcano.api.meta import JSON, Key
from volcano.cli.connection import ApiConnection
from volcano.cli.failures import Failed
from volcano.cli.formats import labels_of
from volcano.cli.resources import CONFIG_MAPS
from volcano.cli.slurm.batch_job import JOB_ID_KEY, JOB_NAME_LABEL
from volcano.cli.slurm.values import ValueRefused, parse_array

COUNTER: Final = "vsub-job-numbers"
LAST: Final = "last"
MAX_TRIES: Final = 32
ARRAY_PART: Final = re.compile(r"(\d{1,18})_(?:\[([^\]]+)\]|(\d{1,9}))")


def take_numbers(connection: ApiConnection, namespace: str, count: int) -> int:
    """The first of `count` numbers that no other job has."""
    for _ in range(MAX_TRIES):
        try:
            counter = connection.attempt(connection.client.get_json(CONFIG_MAPS, Key(namespace, COUNTER)))
            last = int((counter.get("data") or {}).get(LAST, "0"))
            counter["data"] = {**(counter.get("data") or {}), LAST: str(last + count)}
            connection.attempt(connection.client.update(CONFIG_MAPS, counter))
            return last + 1
        except NotFound:
            _make_counter(connection, namespace)
        except Conflict:
            continue  # another submission was faster
        except (ValueError, TypeError) as error:
            raise Failed(f"ConfigMap {namespace}/{COUNTER}: data.{LAST} is no number") from error
        except ApiError as error:
            raise Failed(error.message) from error
    raise Failed(f"no job number could be had: ConfigMap {namespace}/{COUNTER} changes too fast")


def _make_counter(connection: ApiConnection, namespace: str) -> None:
    body = {"metadata": {"name": COUNTER, "namespace": namespace}, "data": {LAST: "0"}}
    try:
        connection.attempt(connection.client.create(CONFIG_MAPS, body))
    except AlreadyExists:
        return
    except ApiError as error:
        raise Failed(error.message) from error


def jobs_called(jobs: list[JSON], word: str) -> list[JSON]:
    """The jobs that a word means: a number, a number of an array, `12_3`, `12_[1-5]`, a job's name, or a script's."""
    part = ARRAY_PART.fullmatch(word)
    if part is not None:
        indexes = _indexes(part[2] or part[3], word)
        return [
            job
            for job in jobs
            if labels_of(job).get(ARRAY_KEY) == part[1] and int(labels_of(job).get(ARRAY_INDEX_KEY, "-1")) in indexes
        ]
    named = [job for job in jobs if job["metadata"]["name"] == word]
    if named:
        return named
    if word.isdecimal():
        array = [job for job in jobs if labels_of(job).get(ARRAY_KEY) == word]
        return array or [job for job in jobs if labels_of(job).get(JOB_ID_KEY) == word]
    return [job for job in jobs if labels_of(job).get(JOB_NAME_LABEL) == word]


def _indexes(text: str, word: str) -> frozenset[int]:
    try:
        return frozenset(parse_array(text).indexes)
    except ValueRefused as error:
        raise Failed(f"{word}: {text!r} {error}") from error


def shown_number(job: JSON) -> str:
    """`12`, `12_3`, or the name of a job that vsub did not number."""
    labels = labels_of(job)
    if ARRAY_KEY in labels:
        return f"{labels[ARRAY_KEY]}_{labels.get(ARRAY_INDEX_KEY, '')}"
    return labels.get(JOB_ID_KEY) or str(job["metadata"]["name"])
