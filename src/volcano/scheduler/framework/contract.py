"""The plugin contract, checked when a class is defined: every method of a plugin is a point, and fits its Protocol.

mypy reports the same for plugins that are type-checked; this is for all others. Annotations are compared where both
sides have them and they can be resolved; what cannot be decided passes.
"""

from __future__ import annotations

import difflib
import inspect
import re
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from volcano.scheduler.framework.points import POINTS, UNASKED

SIMILAR: Final = 0.6  # how similar a name must be to a point's to be suggested
MISSPELT: Final = 0.8  # how similar the name of a mixin's method must be to be refused
VOLCANO_SUFFIX: Final = re.compile(r"_(fn|func|function)$")


class ContractError(TypeError):
    """A class is no plugin; the message has a line for each method that is wrong."""


def check_contract(cls: type, base: type) -> None:
    """`base` is Plugin: its own methods may be overridden with the same signature."""
    expected = _expected(base)
    problems = [problem for owner, name in _defined(cls, base) for problem in _problems(cls, owner, name, expected)]
    if problems:
        raise ContractError("\n".join(problems))


def signature_text(function: Callable[..., Any]) -> str:
    """`job_order(self, one: Job, other: Job) -> float`."""
    text = str(inspect.signature(function)).replace("'", "").replace(", /", "")
    return f"{function.__name__}{text}"


def _expected(base: type) -> dict[str, Callable[..., Any]]:
    own = {name: value for name, value in vars(base).items() if inspect.isfunction(value) and not name.startswith("_")}
    return {**own, **{name: getattr(point.protocol, name) for name, point in POINTS.items()}}


def _defined(cls: type, base: type) -> Iterator[tuple[type, str]]:
    """Public members of the class and its mixins, each with the class it comes from."""
    for owner in cls.__mro__:
        if owner in base.__mro__ or (owner is not cls and issubclass(owner, base)):
            continue  # a plugin that this one extends was checked when it was defined
        for name in vars(owner):
            if not name.startswith("_"):
                yield owner, name


def _problems(cls: type, owner: type, name: str, expected: Mapping[str, Callable[..., Any]]) -> Iterator[str]:
    value = vars(owner)[name]
    place = f"{_place(owner, value)}: {owner.__name__}.{name}"
    if name in expected:
        if owner is not cls and inspect.getattr_static(cls, name) is not value:
            return  # hidden by another definition
        misfit = _misfit(value, expected[name], owner)
        if misfit:
            yield f"{place} does not fit; expected {signature_text(expected[name])}: {misfit}"
    elif callable(value):
        likeness = SIMILAR if owner is cls else MISSPELT
        meant = _meant(name, expected, likeness)
        if owner is cls or meant:
            yield f"{place} is not an extension point; {_hint(name, meant, expected)}"


# -- names ------------------------------------------------------------------------------------------------------------
def _hint(name: str, meant: str, expected: Mapping[str, Callable[..., Any]]) -> str:
    unasked = {_plain(volcano): volcano for volcano in UNASKED}
    if _plain(name) in unasked:
        volcano = unasked[_plain(name)]
        return f"Volcano's {volcano} does not exist here: {UNASKED[volcano]}"
    if meant:
        return f"did you mean {signature_text(expected[meant])}? A helper's name begins with an underscore"
    return f"a helper's name begins with an underscore; the points are {', '.join(sorted(POINTS))}"


def _meant(name: str, expected: Mapping[str, Callable[..., Any]], likeness: float) -> str:
    """The point with the most similar name, also of those that Volcano uses; empty when none is similar enough."""
    known = {_plain(point.volcano): point.name for point in POINTS.values()} | {each: each for each in expected}
    close = difflib.get_close_matches(_plain(name), known, n=1, cutoff=likeness)
    return known[close[0]] if close else ""


def _plain(name: str) -> str:
    """`JobOrderFn` and `job_order` alike."""
    return VOLCANO_SUFFIX.sub("", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower())


def _place(owner: type, value: Any) -> str:
    function = inspect.unwrap(getattr(value, "fget", None) or getattr(value, "__func__", value))
    code = getattr(function, "__code__", None)
    if code is not None:
        return f"{code.co_filename}:{code.co_firstlineno}"
    return getattr(sys.modules.get(owner.__module__), "__file__", None) or owner.__module__


# -- signatures -------------------------------------------------------------------------------------------------------
def _misfit(value: Any, expected: Callable[..., Any], owner: type) -> str:
    """What is wrong with a method; empty when it fits."""
    bound = value.__get__(object(), owner) if hasattr(value, "__get__") and not isinstance(value, property) else value
    if not callable(bound):
        return "it is not a method"
    if inspect.iscoroutinefunction(bound) or inspect.isasyncgenfunction(bound):
        return "it must not be async"
    wanted = list(inspect.signature(expected).parameters.values())[1:]
    try:
        given = inspect.signature(bound)
        given.bind(*wanted)
    except (TypeError, ValueError) as error:
        return f"it cannot be called with {_counted(len(wanted))} ({error})"
    return _annotation_misfit(bound, given, expected)


def _counted(number: int) -> str:
    return f"{number} positional {'argument' if number == 1 else 'arguments'}"


def _annotation_misfit(bound: Any, given: inspect.Signature, expected: Callable[..., Any]) -> str:
    ours = get_type_hints(expected)
    theirs = _resolved(bound)
    names = list(inspect.signature(expected).parameters)[1:]
    for place, name in enumerate(names):
        parameter = _parameter_at(given, place)
        if parameter in theirs and not _accepts(theirs[parameter], ours[name]):
            return f"parameter {parameter} is {_written(theirs[parameter])} and gets {_written(ours[name])}"
    if "return" in theirs and not _accepts(ours["return"], theirs["return"]):
        return f"it returns {_written(theirs['return'])}"
    if "return" not in theirs and inspect.isgeneratorfunction(bound) and not _accepts(ours["return"], Iterator):
        return "it yields instead of returning"
    return ""


def _parameter_at(signature: inspect.Signature, place: int) -> str:
    """The parameter that takes the argument at a place; what follows `*about` is taken by it."""
    positional = [each for each in signature.parameters.values() if each.kind is not each.KEYWORD_ONLY]
    at = next((i for i, each in enumerate(positional) if each.kind is each.VAR_POSITIONAL), len(positional))
    return positional[min(place, at)].name


def _resolved(bound: Any) -> dict[str, Any]:
    try:
        return get_type_hints(bound)
    except Exception:  # an annotation may hold any expression; one that cannot be resolved is not compared
        return {}


def _accepts(wanted: Any, given: Any) -> bool:
    """Whether a value of type `given` can stand where `wanted` is expected; yes when that cannot be decided."""
    if wanted in (Any, object) or given is Any:
        return True
    if _is_union(given):
        return all(_accepts(wanted, each) for each in get_args(given))
    if _is_union(wanted):
        return any(_accepts(each, given) for each in get_args(wanted))
    upper, lower = get_origin(wanted) or wanted, get_origin(given) or given
    if not isinstance(upper, type) or not isinstance(lower, type):
        return True
    if upper is float and issubclass(lower, int):
        return True
    try:
        related = issubclass(lower, upper)
    except TypeError:  # a Protocol that cannot be tested at run time
        return True
    return related and _arguments_agree(get_args(wanted), get_args(given))


def _arguments_agree(wanted: tuple[Any, ...], given: tuple[Any, ...]) -> bool:
    if len(wanted) != len(given):
        return True
    return all(_accepts(w, g) or _accepts(g, w) for w, g in zip(wanted, given, strict=True))


def _is_union(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, types.UnionType)


def _written(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) and not get_args(annotation) else str(annotation)
