"""Kubeconfigs as people have them."""

from pathlib import Path

import pytest
import yaml

from slicewatch.kube.configuration import (
    ConfigurationError,
    connect,
    namespace_of,
    users_kubeconfig,
)


def write(path: Path, context: str, *, server: str, namespace: str = "") -> Path:
    about = {"cluster": context, "user": context} | ({"namespace": namespace} if namespace else {})
    path.write_text(
        yaml.safe_dump(
            {
                "clusters": [{"name": context, "cluster": {"server": server}}],
                "users": [{"name": context, "user": {"token": "t"}}],
                "contexts": [{"name": context, "context": about}],
                "current-context": context,
            }
        )
    )
    return path


@pytest.fixture
def both(tmp_path: Path) -> str:
    first = write(tmp_path / "a", "one", server="http://one.invalid", namespace="ml")
    second = write(tmp_path / "b", "two", server="http://two.invalid")
    return f"{first}:{second}"


async def test_several_files_are_merged_and_a_context_is_chosen(both: str) -> None:
    for context, host in (("one", "http://one.invalid"), ("two", "http://two.invalid")):
        client = await connect(both, context)
        assert client.configuration.host == host
        await client.close()


def test_a_context_has_a_namespace_or_the_default_one(both: str) -> None:
    assert namespace_of(both, "one") == "ml"
    assert namespace_of(both, "two") == "default"
    assert namespace_of(both) == "default"


def test_an_unknown_context_is_answered_with_those_that_exist(both: str) -> None:
    with pytest.raises(ConfigurationError, match="no context three; it has one, two"):
        namespace_of(both, "three")


def test_a_file_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere does not exist"):
        namespace_of(str(tmp_path / "nowhere"))


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("contexts: []")
    with pytest.raises(ConfigurationError, match="cannot be used"):
        namespace_of(str(wrong))


def test_files_are_chosen_as_kubectl_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    assert users_kubeconfig("") == ""
    usual = tmp_path / ".kube" / "config"
    usual.parent.mkdir()
    usual.write_text("")
    assert users_kubeconfig("") == str(usual)
    monkeypatch.setenv("KUBECONFIG", "a:b")
    assert users_kubeconfig("") == "a:b"
    assert users_kubeconfig("given") == "given"
