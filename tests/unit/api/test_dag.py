"""The DAG check."""

from hypothesis import given
from hypothesis import strategies as st

from volcano.api.dag import Cycle, UnknownDependency, find_cycle, first_flaw, order


def test_a_diamond_has_no_flaw():
    assert first_flaw({"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}) is None


def test_a_cycle_is_spelled_out():
    flaw = first_flaw({"start": ["a"], "a": ["b"], "b": ["c"], "c": ["a"]})

    assert flaw == Cycle(("a", "b", "c", "a"))
    assert str(flaw) == "a -> b -> c -> a"


def test_depending_on_oneself_is_a_cycle():
    assert first_flaw({"a": ["a"]}) == Cycle(("a", "a"))


def test_an_unknown_dependency_is_named():
    flaw = first_flaw({"a": ["ghost"]})

    assert flaw == UnknownDependency("a", "ghost")
    assert str(flaw) == "a depends on ghost, which does not exist"


def test_a_long_chain_needs_no_recursion():
    chain = {str(i): [str(i + 1)] for i in range(20_000)} | {"20000": []}

    assert first_flaw(chain) is None
    assert order(chain)[0] == "20000"


graphs = st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdef"), max_size=4), max_size=6)


@given(graphs)
def test_a_cycle_found_is_really_there_and_otherwise_an_order_exists(graph):
    known = {name: [t for t in targets if t in graph] for name, targets in graph.items()}

    cycle = find_cycle(graph)

    if cycle is not None:
        assert cycle.names[0] == cycle.names[-1]
        assert all(b in graph[a] for a, b in zip(cycle.names, cycle.names[1:], strict=False))
    else:
        ordered = order(known)
        assert sorted(ordered) == sorted(graph)
        assert all(ordered.index(t) < ordered.index(n) for n, targets in known.items() for t in targets)
