"""What keys change: the tab, the selection, the order, and the object that is looked at."""

from volcano.cli.top import keys
from volcano.cli.top.browser import Browser

from .pictures import job, node, picture, pod

CLUSTER = picture(
    jobs=[job("a", running=1), job("b", "Pending"), job("c", "Completed"), job("d", running=2)],
    nodes=[node("n1"), node("n2"), node("n3", cpu="2")],
    pods=[pod("p1", "a", "n2", cpu="3"), pod("p2", "d", "n3", cpu="2", memory="4Gi")],
)


def press(browser, *pressed, shown=CLUSTER, page=10):
    for key in pressed:
        browser.pressed(key, shown, page)
    return browser


def names(browser, shown=CLUSTER):
    return [row.key[1] for row in browser.table(shown)[1]]


def test_tabs_by_number_arrow_and_tab_key():
    browser = Browser()

    assert [press(browser, key).kind for key in ("2", keys.RIGHT, keys.NEXT, keys.LEFT, keys.PREVIOUS)] == [
        "queues", "nodes", "jobs", "nodes", "queues",
    ]  # fmt: skip


def test_running_jobs_come_first_and_the_fullest_nodes():
    assert names(Browser()) == ["a", "d", "b", "c"]
    assert names(Browser("nodes")) == ["n3", "n2", "n1"]


def test_s_sorts_by_the_next_column_and_r_turns_it_round():
    browser = press(Browser("nodes"), "s")

    assert browser.sort_column(browser.table(CLUSTER)[0]) == "MEMORY" and names(browser) == ["n3", "n2", "n1"]
    assert names(press(browser, "r")) == ["n1", "n2", "n3"]
    assert names(press(browser, "s", "s")) == ["n1", "n2", "n3"], "after the last column comes the first: the name"


def test_the_selection_stays_with_its_object_when_rows_move():
    browser = press(Browser(), keys.DOWN)
    assert browser.selected["jobs"] == ("team", "d")

    later = picture(jobs=[job("d", "Completed"), job("z"), job("y")])
    rows = browser.table(later)[1]

    assert rows[browser.place(rows)].key == ("team", "d")


def test_moving_ends_at_the_ends():
    browser = Browser()

    press(browser, keys.UP)
    assert browser.selected["jobs"][1] == "a"
    press(browser, keys.END, keys.DOWN)
    assert browser.selected["jobs"][1] == "c"
    press(browser, keys.PAGE_UP, page=2)
    assert browser.selected["jobs"][1] == "d"
    press(browser, keys.HOME)
    assert browser.selected["jobs"][1] == "a"


def test_the_selected_row_is_always_on_the_screen():
    many = picture(jobs=[job(f"j{number:03}") for number in range(200)])
    browser = Browser()

    for key in [keys.PAGE_DOWN] * 5 + [keys.UP] * 30 + [keys.END, keys.PAGE_UP]:
        press(browser, key, shown=many, page=9)
        rows = browser.table(many)[1]
        first = browser.scroll(rows, 9)
        assert first <= browser.place(rows) < first + 9


def test_enter_opens_an_object_and_escape_goes_back():
    browser = press(Browser(), keys.DOWN, keys.ENTER)
    assert browser.detail == ("team", "d") and browser.looked_at() == ("team", "d")

    press(browser, keys.DOWN, keys.DOWN)
    assert browser.detail_line == 2

    press(browser, keys.BACK)
    assert browser.detail is None and browser.selected["jobs"] == ("team", "d")


def test_q_ends_it_everywhere_and_other_keys_change_nothing():
    assert press(Browser(), keys.QUIT).is_over
    assert press(Browser(), keys.ENTER, keys.QUIT).is_over
    browser = press(Browser(), "x", "Z", "9")
    assert browser == Browser()


def test_an_empty_table_takes_keys():
    browser = press(Browser(), keys.DOWN, keys.ENTER, "s", "r", keys.END, shown=picture())

    assert browser.detail is None
