"""Settings: which source wins, what a value may look like, and that every fault is reported."""

import json
from dataclasses import dataclass

import pytest

from slicewatch.service.settings import SettingsError, duration, fields, load, setting


@dataclass(frozen=True, kw_only=True)
class WatcherSettings:
    """Watches things.

    A second paragraph that no help text shows.
    """

    scrape_interval: float = setting(15.0, help="How often we are scraped.", parse=duration)
    listen: str = setting(":9400", help="Where it listens.")
    metrics: tuple[str, ...] = setting((), help="Families to show; none means all.")
    labels: dict[str, str] = setting({}, help="Static labels.")
    verbose: bool = setting(False, help="Say more.")
    limit: int | None = setting(None, help="At most so many; 100 % of them by default.")
    ratio: float = setting(0.5, help="A share.")
    node: str = setting("", help="Name of the node.", variable="NODE_NAME")

    def __post_init__(self) -> None:
        if self.limit == 0:
            raise SettingsError(["limit is 0", "nothing would be shown"])
        if self.ratio > 1:
            raise ValueError("ratio is above 1; a share lies between 0 and 1")


@pytest.fixture
def file(tmp_path):
    def write(text, name="settings.yaml"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def faults(arguments=(), environment=None):
    with pytest.raises(SettingsError) as refusal:
        load(WatcherSettings, arguments, environment or {})
    return refusal.value.faults


def test_without_sources_each_setting_has_its_default():
    assert load(WatcherSettings, [], {}) == WatcherSettings()


def test_flags_beat_the_environment_and_the_environment_beats_the_file(file):
    path = str(file("ratio: 0.1\nlisten: ':1'\nlimit: 1\n"))
    environment = {"SLICEWATCH_RATIO": "0.2", "SLICEWATCH_LISTEN": ":2"}
    got = load(WatcherSettings, ["--config", path, "--ratio=0.3"], environment)
    assert (got.ratio, got.listen, got.limit) == (0.3, ":2", 1)


def test_the_flag_for_the_file_beats_the_variable_for_it(file):
    by_flag, by_variable = file("limit: 1", "a.yaml"), file("limit: 2", "b.yaml")
    environment = {"SLICEWATCH_CONFIG": str(by_variable)}
    assert load(WatcherSettings, [], environment).limit == 2
    assert load(WatcherSettings, [f"--config={by_flag}"], environment).limit == 1


def test_a_setting_can_have_a_variable_of_another_name():
    assert load(WatcherSettings, [], {"NODE_NAME": "n7"}).node == "n7"
    assert load(WatcherSettings, [], {"SLICEWATCH_NODE": "n7"}).node == ""


def test_a_file_in_the_users_form_is_understood(file):
    path = file(
        json.dumps(
            {
                "metrics": ["gpu_utilization", "gpu_memory_used_bytes"],
                "scrape_interval": "15s",
                "labels": {"cluster": "production", "region": "cn-east"},
            },
            indent="\t",
        ),
        "gpu-metrics.json",
    )
    got = load(WatcherSettings, ["--config", str(path)], {})
    assert got.metrics == ("gpu_utilization", "gpu_memory_used_bytes")
    assert got.scrape_interval == 15.0
    assert got.labels == {"cluster": "production", "region": "cn-east"}


def test_an_empty_file_sets_nothing(file):
    assert load(WatcherSettings, ["--config", str(file("# nothing\n"))], {}) == WatcherSettings()


@pytest.mark.parametrize(
    ("arguments", "environment", "expected"),
    [
        (["--scrape-intervall=5s"], {}, "--scrape-intervall=5s; did you mean --scrape-interval?"),
        (["--listn", ":1"], {}, "--listn; did you mean --listen?"),
        (["--qqqq"], {}, "unknown argument --qqqq"),
        ([], {"SLICEWATCH_LISTENN": ":1"}, "SLICEWATCH_LISTENN: unknown variable; did you mean"),
        ([], {"SLICEWATCH_METRIC": "a"}, "did you mean SLICEWATCH_METRICS?"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_known_one(arguments, environment, expected):
    assert expected in faults(arguments, environment)[0]


def test_an_unknown_key_of_the_file_is_refused_with_the_nearest_known_one(file):
    path = file("metricss: []\n7: x\n")
    first, second = faults(["--config", str(path)])
    assert first == f"file {path}: unknown key 'metricss'; did you mean metrics?"
    assert second == f"file {path}: unknown key 7"


def test_no_flag_may_be_shortened():
    assert "--lim" in faults(["--lim=5"])[0]


SERVICE_LINKS = {
    "SLICEWATCH_EXPORTER_SERVICE_HOST": "10.96.0.7",
    "SLICEWATCH_EXPORTER_SERVICE_PORT": "9400",
    "SLICEWATCH_EXPORTER_SERVICE_PORT_HTTP": "9400",
    "SLICEWATCH_EXPORTER_PORT": "tcp://10.96.0.7:9400",
    "SLICEWATCH_EXPORTER_PORT_9400_TCP": "tcp://10.96.0.7:9400",
    "SLICEWATCH_EXPORTER_PORT_9400_TCP_PROTO": "tcp",
    "SLICEWATCH_EXPORTER_PORT_9400_TCP_PORT": "9400",
    "SLICEWATCH_EXPORTER_PORT_9400_TCP_ADDR": "10.96.0.7",
}


def test_what_the_kubelet_tells_of_our_own_service_is_no_mistyped_setting():
    @dataclass(frozen=True)
    class Finder:
        """Finds a Service, by settings whose names come close to the kubelet's variables."""

        exporter_service: str = setting("", help="Service.")
        exporter_port: str = setting("", help="Port.", variable="SLICEWATCH_TARGET_PORT")

    assert load(Finder, [], SERVICE_LINKS) == Finder()


@pytest.mark.parametrize("variable", ["SLICEWATCH_QQQQ", "LISTENN", "slicewatch_listenn"])
def test_variables_of_others_are_left_alone(variable):
    assert load(WatcherSettings, [], {variable: "x"}) == WatcherSettings()


def test_all_faults_of_all_sources_are_told_at_once(file):
    path = file("limit: many\nunheard: 1\n")
    told = faults(
        ["--config", str(path), "--scrape-interval=soon", "--verbose=perhaps", "--nope"],
        {"SLICEWATCH_RATIO": "half", "SLICEWATCH_LABELS": "region"},
    )
    for where in (
        "unknown argument --nope",
        f"file {path}: unknown key 'unheard'",
        f"file {path}: limit: 'many'",
        "environment SLICEWATCH_RATIO: 'half'",
        "environment SLICEWATCH_LABELS: 'region' is not a valid pair",
        "flag --scrape-interval: 'soon' is not a valid duration",
        "flag --verbose: 'perhaps'",
    ):
        assert any(fault.startswith(where) for fault in told), (where, told)
    assert len(told) == 7


def test_the_message_of_the_error_has_a_line_for_each_fault():
    error = SettingsError(["one", "two"])
    assert str(error).splitlines() == ["one", "two"]


def test_a_rule_between_settings_is_reported_as_a_fault_too():
    assert faults(["--ratio=2"]) == ("ratio is above 1; a share lies between 0 and 1",)


def test_several_rules_between_settings_stay_several_faults():
    assert faults(["--limit=0"]) == ("limit is 0", "nothing would be shown")


def test_a_flag_without_its_value_is_a_fault_and_no_exit():
    assert faults(["--ratio"]) == ("flag --ratio: expected one argument",)


def test_a_file_that_is_not_there_is_a_fault(tmp_path):
    path = tmp_path / "none.yaml"
    assert faults(["--config", str(path)]) == (
        f"file {path}: cannot be read: No such file or directory",
    )


def test_a_directory_in_place_of_a_file_is_a_fault(tmp_path):
    assert "Is a directory" in faults(["--config", str(tmp_path)])[0]


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("broken.yaml", b"metrics: [a", "not YAML"),
        ("broken.json", b'{"metrics": [', "not JSON"),
        ("latin.yaml", "node: M\u00fcnchen".encode("latin-1"), "not text in UTF-8"),
        ("list.yaml", b"- metrics\n", "must map names to settings, not list"),
        ("text.json", b'"metrics"', "must map names to settings, not str"),
    ],
)
def test_a_file_of_another_form_is_one_fault_on_one_line(tmp_path, name, content, why):
    path = tmp_path / name
    path.write_bytes(content)
    (fault,) = faults(["--config", str(path)])
    assert fault.startswith(f"file {path}: ")
    assert why in fault
    assert "\n" not in fault


@pytest.mark.parametrize(
    ("flag", "name", "value"),
    [
        ("--metrics=a, b,,c", "metrics", ("a", "b", "c")),
        ("--metrics=", "metrics", ()),
        ("--labels=cluster=east, region=a=b", "labels", {"cluster": "east", "region": "a=b"}),
        ("--labels=empty=", "labels", {"empty": ""}),
        ("--verbose", "verbose", True),
        ("--verbose=true", "verbose", True),
        ("--verbose=false", "verbose", False),
        ("--verbose=0", "verbose", False),
        ("--limit=12", "limit", 12),
        ("--limit=null", "limit", None),
        ("--ratio=1e-1", "ratio", 0.1),
        ("--listen= :5 ", "listen", ":5"),
        ("--scrape-interval=1m30s", "scrape_interval", 90.0),
    ],
)
def test_the_text_of_a_flag_becomes_the_type_of_the_field(flag, name, value):
    assert getattr(load(WatcherSettings, [flag], {}), name) == value


def test_the_text_of_a_variable_is_read_as_a_flags_is():
    environment = {"SLICEWATCH_LABELS": "a=1,b=2", "SLICEWATCH_VERBOSE": "TRUE"}
    got = load(WatcherSettings, [], environment)
    assert got.labels == {"a": "1", "b": "2"}
    assert got.verbose is True


@pytest.mark.parametrize("arguments", [["--verbose=perhaps"], ["--limit=1.5"], ["--ratio=x"]])
def test_a_value_of_another_type_is_shown_with_what_was_expected(arguments):
    (fault,) = faults(arguments)
    assert repr(arguments[0].partition("=")[2]) in fault
    assert "Expected" in fault


def test_a_truth_value_that_is_none_is_told_what_to_write():
    assert faults(["--verbose=yes"])[0].endswith("write true or false")


def test_the_file_must_give_lists_and_texts_the_type_of_the_field(file):
    path = file("labels: {rack: 12}\nmetrics: {a: b}\n")
    told = faults(["--config", str(path)])
    assert [fault.partition(f"file {path}: ")[2][:7] for fault in told] == ["metrics", "labels:"]


def test_a_default_that_can_change_is_not_shared():
    one, other = WatcherSettings(), WatcherSettings()
    one.labels["a"] = "b"
    assert other.labels == {}
    assert {f.name: f.default for f in fields(WatcherSettings)}["labels"] == {}


def test_a_default_is_shown_as_a_flag_would_be_given_it():
    @dataclass(frozen=True)
    class Defaults:
        """One of each."""

        a: bool = setting(True, help="A.")
        b: tuple[str, ...] = setting(("x", "y"), help="B.")
        c: dict[str, str] = setting({"k": "v", "l": "w"}, help="C.")
        d: int | None = setting(None, help="D.")
        e: float = setting(0.0, help="E.")

    shown = {f.name: f.default_text for f in fields(Defaults)}
    assert shown == {"a": "true", "b": "x,y", "c": "k=v,l=w", "d": "", "e": "0.0"}
    arguments = [f"{f.flag}={f.default_text}" for f in fields(Defaults) if f.default_text]
    assert load(Defaults, arguments, {}) == Defaults()


def test_help_names_every_setting_with_its_variable_and_default(capsys):
    with pytest.raises(SystemExit) as end:
        load(WatcherSettings, ["--help"], {})
    assert end.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "slicewatch watcher" in shown
    assert "Watches things." in shown
    assert "--config FILE" in shown
    for field in fields(WatcherSettings):
        assert f"{field.flag} " in shown
        assert f"[{field.variable}; default " in shown
        assert field.declaration.help in shown


def test_fields_come_in_the_order_of_declaration_and_without_other_fields():
    @dataclass(frozen=True)
    class Mixed:
        """Has a field that is not a setting."""

        b: int = setting(1, help="B.")
        computed: int = 5
        a: int = setting(2, help="A.")

    assert [f.name for f in fields(Mixed)] == ["b", "a"]


def test_a_variable_that_is_not_utf_8_is_refused():
    with pytest.raises(SettingsError, match="cannot be shown"):
        load(WatcherSettings, [], {"NODE_NAME": "node-\udcff"})


@pytest.mark.parametrize("text", [r'labels: {a: "\ud800"}', r'metrics: ["\ud800"]'])
def test_what_no_page_could_show_is_refused_inside_a_list_or_mapping_too(tmp_path, text):
    path = tmp_path / "settings.yaml"
    path.write_text(text)
    (fault,) = faults(["--config", str(path)])
    assert fault.endswith(r"'\ud800' has characters that cannot be shown")
