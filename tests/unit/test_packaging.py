"""What keeps a checkout with generic top-level names sound: names, layers, locks, files."""

import ast
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
LOCKS = {name: ROOT / "requirements" / f"{name}.lock" for name in ("run", "build", "dev")}
MODULES = [
    path
    for package in [*PACKAGES, "testbed"]
    for path in sorted((ROOT / package).rglob("*.py"))
    if not re.search(r"_pb2(_grpc)?\.py$", path.name)
]
# One line of a lock file: name, version, and for which platforms.
PIN = re.compile(
    r"^(?P<name>[A-Za-z0-9][\w.-]*)==(?P<version>[^\s;\\]+)(?: ; (?P<marker>[^\\]+))?"
)


def pins(lock):
    """Return ``{name: version}``; a name that is pinned apart for platforms has the last one."""
    lines = LOCKS[lock].read_text(encoding="utf-8").splitlines()
    found = (PIN.match(line) for line in lines)
    return {canonicalize_name(pin["name"]): Version(pin["version"]) for pin in found if pin}


def declared(lock):
    runtime, groups = PROJECT["project"]["dependencies"], PROJECT["dependency-groups"]
    if lock == "run":
        return runtime
    if lock == "build":
        return groups["build"]
    named = [wanted for wanted in groups["dev"] if isinstance(wanted, str)]
    return [*runtime, *groups["build"], *named]


def listed_files():
    """Return what is tracked or would be."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("not a git checkout")
    paths = (ROOT / name for name in done.stdout.decode().split("\0") if name)
    return [path for path in paths if path.is_file()]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_top_level_name_belongs_to_our_distribution_only(package):
    owners = importlib.metadata.packages_distributions().get(package, [])
    assert set(owners) <= {PROJECT["project"]["name"]}


# Rules and dashboards are made of them at build time.
BUILD_TIME = {"alerts", "dashboards"}


def test_the_wheel_holds_every_package_of_the_layers_that_runs():
    layers = set(PROJECT["tool"]["importlinter"]["root_packages"])
    assert set(PACKAGES) == layers - BUILD_TIME


def test_the_command_starts_in_a_package_of_the_wheel():
    (target,) = PROJECT["project"]["scripts"].values()
    assert target.partition(".")[0] in PACKAGES


def test_there_is_no_package_below_tests():
    """One would shadow the product's package of the same name."""
    assert list((ROOT / "tests").rglob("__init__.py")) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_has_the_name_of_one_of_the_standard_library(package):
    """Started as a script, its folder comes first on the path: ``http.py`` would break http."""
    names = {path.stem for path in (ROOT / package).rglob("*.py")} - {"__main__", "__init__"}
    assert names & sys.stdlib_module_names == set()


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_module_says_why_it_exists(path):
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


def test_every_folder_of_modules_is_a_package():
    folders = {path.parent for path in MODULES}
    assert [str(f) for f in folders if not (f / "__init__.py").exists()] == []


def test_the_layers_hold():
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-c", program, "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_of_a_lock_carries_hashes(lock):
    text = LOCKS[lock].read_text(encoding="utf-8")
    blocks = re.split(r"\n(?=[A-Za-z0-9])", text)
    requirements = [block for block in blocks if PIN.match(block)]
    assert len(requirements) >= len(declared(lock))
    for block in requirements:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", block), block.splitlines()[0]


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_registry_and_no_path(lock):
    text = LOCKS[lock].read_text(encoding="utf-8")
    assert "://" not in text
    options = {
        word for line in text.splitlines() for word in re.findall(r"(?<!\S)--?[a-z-]+", line)
    }
    assert options <= {"--hash", "-c"}
    assert not re.search(r"^(-e|\.|/)| @ ", text, re.MULTILINE)


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_satisfies_what_is_declared(lock):
    pinned = pins(lock)
    for requirement in map(Requirement, declared(lock)):
        name = canonicalize_name(requirement.name)
        assert name in pinned, f"{name} is not in {lock}.lock; run make lock"
        assert requirement.specifier.contains(pinned[name], prereleases=True), name


def test_what_is_tested_is_what_runs():
    run, dev = pins("run"), pins("dev")
    assert {name: dev.get(name) for name in run} == run


# Put together, or this file would be the first to be found.
PERSONAL = re.compile(
    r"(?<![\w./$}])(?:" + "/ho" + r"me/[a-z]\w*/|" + "/Us" + r"ers/\w+/|" + "/ro" + r"ot/[.\w])"
)


@pytest.mark.parametrize("path", ["home/ada/x", "Users/Ada/x", "root/.cache"])
def test_a_path_below_somebodys_home_is_recognised(path):
    assert PERSONAL.search(f'cache = "/{path}"')
    assert not PERSONAL.search(f"images/{path}")


def test_no_listed_file_knows_the_machine_that_it_was_written_on():
    found = {}
    for path in listed_files():
        text = path.read_bytes().decode("utf-8", "replace")
        if match := PERSONAL.search(text):
            found[str(path.relative_to(ROOT))] = match[0]
        elif len(ROOT.parts) > 2 and f"{ROOT}/" in text:
            found[str(path.relative_to(ROOT))] = str(ROOT)
    assert found == {}
